/**
 * Reads a layer that another program will unpack, and refuses what that program could read otherwise than this reader:
 * then the limits would hold for other files than those that are unpacked.
 */
import { type Budget, spend } from "./budget.ts";
import { quoted, refused } from "./refusal.ts";
import { readTar } from "./tar-reader.ts";

/** First bytes of what engines decompress by themselves: gzip, bzip2, xz, zstd and its frames to be skipped. */
const COMPRESSED = /^(1f8b|425a68|fd377a585a|28b52ffd|5.2a4d18)/;
const MAGIC_BYTES = 8;

/** `bytes` are those that the other program gets. */
export async function checkLayer(bytes: AsyncIterable<Buffer>, budget: Budget): Promise<void> {
  for await (const entry of readTar(plainOnly(bytes))) {
    spend(budget, entry);
    // Some readers skip such content, and others take it for the next entries.
    if (entry.skippedBytes > 0) throw refused(`${quoted(entry.path)} is a ${entry.type} with content`);
  }
}

async function* plainOnly(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head = Buffer.alloc(0);
  for await (const chunk of bytes) {
    if (head.length < MAGIC_BYTES) {
      head = Buffer.concat([head, chunk.subarray(0, MAGIC_BYTES)]);
      if (COMPRESSED.test(head.toString("hex"))) throw refused("a layer is compressed twice or in an unknown way");
    }
    yield chunk;
  }
}
