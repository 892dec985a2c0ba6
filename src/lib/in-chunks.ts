/** The same bytes in pieces of one size; the last piece is shorter. */
export async function* inChunks(content: AsyncIterable<Buffer>, chunkBytes: number): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of content) {
    parts.push(part);
    bytes += part.length;
    if (bytes < chunkBytes) continue;
    const whole = Buffer.concat(parts, bytes);
    let at = 0;
    for (; bytes - at >= chunkBytes; at += chunkBytes) yield whole.subarray(at, at + chunkBytes);
    parts = [whole.subarray(at)];
    bytes -= at;
  }
  if (bytes > 0) yield Buffer.concat(parts, bytes);
}
