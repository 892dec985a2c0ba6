/** Writes the body of an answer as it comes in. What does not end a line gets its end where `endLine` wants one. */
import { once } from "node:events";
import type { Writable } from "node:stream";

const NEWLINE = 10;

export async function writeAnswer(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  out: Writable,
  endLine: boolean,
): Promise<void> {
  let last: number | undefined;
  for await (const chunk of body) {
    last = chunk.at(-1) ?? last;
    if (!out.write(chunk)) await once(out, "drain");
  }
  if (endLine && last !== undefined && last !== NEWLINE) out.write("\n");
}
