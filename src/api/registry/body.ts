import { registryError } from "../../contract/registry-error.ts";

/** Reads a short body of a request to the registry. */
export async function bodyOf(stream: AsyncIterable<Buffer>, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > bytesMax)
      throw registryError("payload_too_large", "SIZE_INVALID", `At most ${bytesMax} bytes can be sent here.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
