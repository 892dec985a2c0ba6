/** What the first process of a container wrote. */
import type { DockerClient } from "../engine/docker-client.ts";

const HEADER_BYTES = 8;

/** Standard output and error together, of `lines` lines at the end and `bytesMax` bytes with the headers. The engine sends frames: a kind, three empty bytes, a length, the bytes. */
export async function logsOf(
  client: DockerClient,
  id: string,
  { lines, bytesMax }: { lines: number | "all"; bytesMax: number },
): Promise<string> {
  const query = { stdout: true, stderr: true, tail: lines };
  const bytes = await client.bytes("GET", `/containers/${id}/logs`, bytesMax, { query });
  const parts: Buffer[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const end = at + HEADER_BYTES + bytes.readUInt32BE(at + 4);
    parts.push(bytes.subarray(at + HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(parts).toString("utf8");
}
