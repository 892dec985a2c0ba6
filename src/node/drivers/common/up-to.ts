/** The whole of a body that has at most `bytesMax` bytes. Null for a longer one, whose rest is not read. */
export async function upTo(body: AsyncIterable<Buffer>, bytesMax: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let left = bytesMax;
  for await (const chunk of body) {
    left -= chunk.length;
    if (left < 0) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
