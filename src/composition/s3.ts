/**
 * The S3 door. It answers on a port of its own (`s3_port`), and on the server's port at `s3.DOMAIN` and
 * `BUCKET.s3.DOMAIN`.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { hostUrl, LOOPBACK_DOMAIN, S3_LABEL } from "../contract/addresses.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { SERVER_OPTIONS } from "../http/attach.ts";
import { clientOf, isFromServer } from "../http/peer-field.ts";
import { hostName } from "../http/route.ts";
import { openDefaultCertificate } from "../http/tls/default-certificate.ts";
import { asHttp, asNode } from "../http/tls/tls-server.ts";
import type { DriveUses } from "../kinds/drive/drive-uses.ts";
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
import { NO_METER } from "../s3/files/use-meter.ts";
import { wrongToken } from "../s3/operations/lists.ts";
import { createS3Handler, type OpenedDrive } from "../s3/s3-handler.ts";
import { IDLE_MS, openS3Listener, type S3Handler } from "../s3/s3-listener.ts";
import { S3Error } from "../s3/wire/s3-error.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Identity } from "./identity.ts";
import { createS3Audit } from "./s3-audit.ts";
import type { Start } from "./start.ts";

export interface S3Door {
  /** Serves a request to a host name of the door on the server's port. `isWaiting`: see `createS3Handler`. */
  serve(req: IncomingMessage, res: ServerResponse, isWaiting: boolean): void;
  /** Opens the port of the door, where it has one, and tells the address of the door in the settings. */
  listen(): Promise<void>;
}

/** `peers` takes requests about drives of other nodes; null where this server knows no other. */
export function createS3Door(
  start: Start,
  { makerOf, authenticator }: Identity,
  deps: Deps,
  uses: DriveUses,
  peers: Pick<Gateway, "handOn"> | null,
): S3Door {
  const { config, settings } = start;
  const { nodes } = deps;
  const isElsewhere = (node: string | null): node is string => node !== null && node !== nodes.self.id && !nodes.shared;
  const domainHost = config.domain === undefined ? null : `${S3_LABEL}.${config.domain}`;
  const isBelowDomain = (host: string): boolean =>
    domainHost !== null && (host === domainHost || host.endsWith(`.${domainHost}`));
  const { store, clock, log, keyFor } = deps;
  const { sessionOf, exchange } = createS3Sessions({ store, settings, clock, keyFor, makerOf });
  const keySessionOf = createS3Keys({ store, settings, keyFor, ...authenticator });
  const audit = createS3Audit(store);
  const proxies = proxiesOf(config);
  const handler = createS3Handler({
    clock,
    audit,
    tries: new FailedTries(clock, config.anonymous_writes, store.sharedUses("s3")),
    addressOf(req) {
      const { address, workload } = clientOf(req);
      return clientAddress(address, req.headers["x-forwarded-for"], proxies, workload);
    },
    async exchange(token, seconds, origin) {
      const made = await exchange(token, seconds);
      if (!made) return null;
      const { drive, holder, credentials } = made;
      const session = { workspace: drive.workspace, holder };
      await audit({ ...origin, action: "s3AssumeRoleWithWebIdentity", session, bucket: drive.name, status: 200 });
      return credentials;
    },
    hosts: [...(domainHost === null ? [] : [domainHost]), `${S3_LABEL}.${LOOPBACK_DOMAIN}`],
    region: () => settings.region,
    meterOf: async (workspace) => (await uses.of(workspace)) ?? NO_METER,
    shortage: () => deps.disk.shortage(),
    async sessionOf(accessKeyId, token, bucket) {
      const session = await (token === null
        ? keySessionOf(accessKeyId, bucket)
        : sessionOf(accessKeyId, token, bucket));
      return (
        session && {
          ...session,
          opened: session.opened && openedOf(session.opened),
          async buckets(page) {
            const { drives, next } = await session.drives(page).catch((error: unknown) => {
              throw error instanceof PlatformError && error.code === "invalid_cursor" ? wrongToken() : error;
            });
            return { buckets: drives.map(bucketOf), next };
          },
        }
      );
    },
    handOn(req, res, node, isWaiting) {
      // The other server looks at the host too. A request that was handed on already is refused below.
      if (peers === null || !isElsewhere(node) || isFromServer(req.socket)) return false;
      if (!isBelowDomain(clientHost(req))) return false;
      peers.handOn(req, res, node, { continueExpected: isWaiting });
      return true;
    },
    async foldersOf({ drive, node }) {
      const { driver } = deps;
      if (isElsewhere(node))
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
  return {
    serve(req, res, isWaiting) {
      res.setTimeout(IDLE_MS, () => res.destroy());
      void handler(req, res, isWaiting);
    },
    async listen() {
      const ownUrl = config.s3_port === undefined ? null : await listenApart(start, handler, config.s3_port);
      const domainUrl = domainHost === null ? null : hostUrl(settings.publicUrl, domainHost);
      settings.s3Url = config.s3_url?.replace(/\/+$/, "") ?? ownUrl ?? domainUrl;
      settings.s3ReachesAll =
        peers !== null && settings.s3Url !== null && isBelowDomain(new URL(settings.s3Url).hostname);
    },
  };
}

/** Opens a port for the door alone; answers with its address. */
async function listenApart(start: Start, handler: S3Handler, port: number): Promise<string> {
  const { config, settings, stack, clock } = start;
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
  return `${isTls(config) ? "https" : "http"}://${new URL(settings.publicUrl).hostname}:${listener.port}`;
}

const clientHost = ({ headers }: IncomingMessage): string => hostName(headers.host ?? "");

const bucketOf = ({ name, createdAt: createdMs }: Resource): DriveBucket => ({ name, createdMs });

const openedOf = ({ drive, access }: { drive: Resource; access: DriveAccess }): OpenedDrive => ({
  bucket: bucketOf(drive),
  drive: drive.uid,
  node: drive.node,
  access: { canWrite: access.mode === "read-write", floor: normalized(access.path).split("/").filter(Boolean) },
});

const namesOf = ({ config, settings }: Start): string[] =>
  [config.s3_url, settings.publicUrl].flatMap((url) => (url ? [new URL(url).hostname.replace(/^\[|\]$/g, "")] : []));
