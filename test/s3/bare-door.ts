/** The S3 door alone, over two folders, for one drive whose secret everybody knows. */
import { createServer } from "node:http";
import { FailedTries } from "../../src/lib/failed-tries.ts";
import { NO_METER } from "../../src/s3/files/use-meter.ts";
import { createS3Handler, type S3Deps, type S3Session } from "../../src/s3/s3-handler.ts";
import { openS3Listener, type S3Listener } from "../../src/s3/s3-listener.ts";
import type { S3Keys } from "./bucket.ts";

export const BARE_BUCKET = "bucket";

const bucket = { name: BARE_BUCKET, createdMs: 0 };

export async function bareSession(accessKeyId: string, _token?: string | null, name = ""): Promise<S3Session | null> {
  if (accessKeyId !== "KEY") return null;
  return {
    secretAccessKey: "secret",
    workspace: "main",
    holder: { subject: "somebody", subjectType: "user", right: null },
    opened: name === BARE_BUCKET ? { access: { canWrite: true, floor: [] }, bucket, drive: "drive", node: null } : null,
    buckets: async () => ({ buckets: [bucket], next: "" }),
    noteUse: () => {},
  };
}

export function openBareDoor(
  { files, work }: { files: string; work: string },
  changed: Partial<S3Deps> = {},
): Promise<S3Listener> {
  const clock = { now: () => Date.now() };
  const handler = createS3Handler({
    sessionOf: bareSession,
    exchange: async () => null,
    addressOf: ({ socket }) => socket.remoteAddress ?? "",
    tries: new FailedTries(clock, 1000),
    audit: async () => {},
    handOn: () => false,
    foldersOf: async () => ({ files, work }),
    meterOf: async () => NO_METER,
    shortage: () => null,
    region: () => "local",
    hosts: [],
    clock,
    onError: (error) => console.error(error),
    ...changed,
  });
  return openS3Listener(createServer(), handler, { host: "127.0.0.1", port: 0 });
}

export const bareKeys = (port: number): S3Keys => ({
  ...{ accessKeyId: "KEY", secretAccessKey: "secret", sessionToken: "token", expiration: "", bucket: BARE_BUCKET },
  ...{ endpoint: `http://127.0.0.1:${port}`, region: "local" },
});
