/** The archive that the platform builds a template from: a Dockerfile and the files of its steps. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { TAR_END, tarHead, tarPadding } from "../../../lib/tar-entry.ts";
import { fileName } from "./dockerfile.ts";

const MODE = 0o644;

export const archiveOf = (dockerfile: string, paths: readonly string[]): Readable =>
  Readable.from(blocks(Buffer.from(dockerfile), paths), { objectMode: false });

async function* blocks(dockerfile: Buffer, paths: readonly string[]): AsyncGenerator<Buffer> {
  yield* tarHead("Dockerfile", dockerfile.length, MODE);
  yield dockerfile;
  yield tarPadding(dockerfile.length);
  for (const [index, path] of paths.entries()) {
    const { size } = await stat(path);
    yield* tarHead(fileName(index), size, MODE);
    yield* createReadStream(path) as AsyncIterable<Buffer>;
    yield tarPadding(size);
  }
  yield TAR_END;
}
