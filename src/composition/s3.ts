/** The S3 door: a listener of its own, beside the port of everything else. */
import { createServer as createTlsServer } from "node:https";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import { SERVER_OPTIONS } from "../http/attach.ts";
import { workloadOf } from "../http/peer-field.ts";
import { openDefaultCertificate } from "../http/tls/default-certificate.ts";
import { asHttp, asNode } from "../http/tls/tls-server.ts";
import { type DriveAccess, normalized } from "../kinds/drive/permissions.ts";
import { createS3Keys } from "../kinds/drive/s3-keys.ts";
import { createS3Sessions } from "../kinds/drive/s3-sessions.ts";
import type { Deps } from "../kinds/port.ts";
import { FailedTries } from "../lib/failed-tries.ts";
import { createServer } from "../lib/network/node-http.ts";
import { clientAddress } from "../lib/network/proxies.ts";
import { isTls, proxiesOf } from "../lib/schemas/tls-settings.ts";
import { need } from "../node/capabilities/need.ts";
import type { DriveBucket } from "../s3/call.ts";
import { createS3Handler, type OpenedDrive } from "../s3/s3-handler.ts";
import { openS3Listener } from "../s3/s3-listener.ts";
import { S3Error } from "../s3/wire/s3-error.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Identity } from "./identity.ts";
import { createS3Audit } from "./s3-audit.ts";
import type { Start } from "./start.ts";

/** Opens the door where the operator wants one, and tells its address in the settings. */
export async function startS3(start: Start, { makerOf, authenticator }: Identity, deps: Deps): Promise<void> {
  const { config, settings, stack } = start;
  const { s3_port: port } = config;
  if (port === undefined) return;
  const { store, clock, log, keyFor } = deps;
  const { sessionOf, exchange } = createS3Sessions({ store, settings, clock, keyFor, makerOf });
  const keySessionOf = createS3Keys({ store, settings, keyFor, callerOfKey: authenticator.callerOfKey });
  const audit = createS3Audit(store);
  const proxies = proxiesOf(config);
  const handler = createS3Handler({
    clock,
    audit,
    tries: new FailedTries(clock, config.anonymous_writes),
    addressOf({ socket, headers }) {
      return clientAddress(socket.remoteAddress, headers["x-forwarded-for"], proxies, workloadOf(socket));
    },
    async exchange(token, seconds, origin) {
      const made = await exchange(token, seconds);
      if (!made) return null;
      const { drive, holder, credentials } = made;
      const session = { workspace: drive.workspace, holder };
      await audit({ ...origin, action: "s3AssumeRoleWithWebIdentity", session, bucket: drive.name, status: 200 });
      return credentials;
    },
    hosts: [...(config.domain === undefined ? [] : [`s3.${config.domain}`]), "s3.localhost"],
    region: () => settings.region,
    shortage: () => deps.disk.shortage(),
    async sessionOf(accessKeyId, token, bucket) {
      const session = await (token === null
        ? keySessionOf(accessKeyId, bucket)
        : sessionOf(accessKeyId, token, bucket));
      return (
        session && {
          ...session,
          opened: session.opened && openedOf(session.opened),
          buckets: async () => (await session.drives()).map(bucketOf),
        }
      );
    },
    async foldersOf({ drive, node }) {
      const { nodes, driver } = deps;
      if (node !== null && node !== nodes.self.id && !nodes.shared)
        throw new S3Error(
          "ServiceUnavailable",
          `The drive is on server '${nodes.nameOf(node)}'. Use the S3 door of that server.`,
        );
      const drives = await need(driver, "drives");
      await drives.create(drive);
      const folders = await drives.folders(drive);
      if (!folders) throw new S3Error("NotImplemented", `Drives of driver '${driver.name}' cannot be reached by S3.`);
      return folders;
    },
    onError: (err, requestId) => log.error({ err, requestId }, "a request to the S3 door failed"),
  });
  const certificate = isTls(config) ? openDefaultCertificate(config, namesOf(start), clock) : null;
  if (certificate) stack.defer(() => certificate.stop());
  const tls = certificate && createTlsServer({ ...SERVER_OPTIONS, ...asNode(certificate.current()) });
  if (tls) certificate.follow((next) => tls.setSecureContext(asNode(next)));
  const listener = stack.add(
    await openS3Listener(tls ? asHttp(tls) : createServer(SERVER_OPTIONS), handler, { host: config.host, port }).catch(
      (cause: unknown) => {
        throw new PlatformError(
          "conflict",
          `The server cannot listen on port ${port} of ${config.host} for S3. Choose another with BERTH_S3_PORT.`,
          { cause },
        );
      },
    ),
  );
  settings.s3Url = s3UrlOf(config, settings.publicUrl, listener.port);
}

const bucketOf = ({ name, createdAt: createdMs }: Resource): DriveBucket => ({ name, createdMs });

const openedOf = ({ drive, access }: { drive: Resource; access: DriveAccess }): OpenedDrive => ({
  bucket: bucketOf(drive),
  drive: drive.uid,
  node: drive.node,
  access: { canWrite: access.mode === "read-write", floor: normalized(access.path).split("/").filter(Boolean) },
});

const namesOf = ({ config, settings }: Start): string[] =>
  [config.s3_url, settings.publicUrl].flatMap((url) => (url ? [new URL(url).hostname.replace(/^\[|\]$/g, "")] : []));

function s3UrlOf(config: Config, publicUrl: string, port: number): string {
  if (config.s3_url !== undefined) return config.s3_url.replace(/\/+$/, "");
  return `${isTls(config) ? "https" : "http"}://${new URL(publicUrl).hostname}:${port}`;
}
