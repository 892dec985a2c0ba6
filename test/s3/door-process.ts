/** The S3 door alone, over two folders, as a process that a test may kill: `node door-process.ts FILES WORK`. */
import { createServer } from "node:http";
import { createS3Handler } from "../../src/s3/s3-handler.ts";
import { openS3Listener } from "../../src/s3/s3-listener.ts";

const [, , files = "", work = ""] = process.argv;

const handler = createS3Handler({
  sessionOf: async () => ({
    secretAccessKey: "secret",
    access: { canWrite: true, floor: [] },
    bucket: { name: "bucket", createdMs: 0 },
    drive: "drive",
    node: null,
  }),
  exchange: async () => null,
  foldersOf: async () => ({ files, work }),
  shortage: () => null,
  region: () => "local",
  hosts: [],
  clock: { now: () => Date.now() },
  onError: (error) => console.error(error),
});
const { port } = await openS3Listener(createServer(), handler, { host: "127.0.0.1", port: 0 });
process.stdout.write(`${port}\n`);
