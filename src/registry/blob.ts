/**
 * Downloads a blob into a file. A connection that breaks is continued from the byte that was reached (Range), also by a
 * later server that finds the file. The file counts only when its size and digest are those of the blob.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { isDiskFull } from "../lib/disk/disk-full.ts";
import type { RemoteLayer } from "./manifest.ts";
import { type Patience, withPatience } from "./patience.ts";
import { broken, RegistryProblem } from "./problem.ts";
import type { Source } from "./repository.ts";
import { discard, type Received } from "./transport.ts";

export interface DownloadOptions {
  signal: AbortSignal;
  patience: Patience;
  /** Bytes that arrived; negative when a download begins again. */
  onBytes?: (bytes: number) => void;
}

/** Times that a broken connection may be continued while bytes arrive; a registry that sends single bytes ends here. */
const CONTINUATIONS_MAX = 100;

export async function downloadBlob(
  source: Source,
  blob: RemoteLayer,
  file: string,
  { signal, patience, onBytes = () => {} }: DownloadOptions,
): Promise<void> {
  let [reported, continuations] = [0, 0];
  const report = (have: number): void => {
    onBytes(have - reported);
    reported = have;
  };
  const attempt = (): Promise<void> =>
    withPatience(patience, signal, async () => {
      for (;;) {
        const before = await sizeOf(file);
        try {
          return await fetchRest(source, blob, file, signal, report);
        } catch (error) {
          signal.throwIfAborted();
          const moved = (await sizeOf(file)) > before;
          if (!isCutOff(error) || !moved || ++continuations > CONTINUATIONS_MAX) throw error;
        }
      }
    });
  const foundParts = (await sizeOf(file)) > 0;
  try {
    await attempt();
  } catch (error) {
    // Bytes that an earlier, crashed server left may be wrong; they are worth one download from the start.
    if (!foundParts || !(error instanceof WrongDigest)) throw error;
    await attempt();
  }
}

class WrongDigest extends RegistryProblem {}

const isCutOff = (error: unknown): boolean => error instanceof RegistryProblem && error.reason === "unreachable";

async function fetchRest(
  source: Source,
  { digest, sizeBytes }: RemoteLayer,
  file: string,
  signal: AbortSignal,
  report: (have: number) => void,
): Promise<void> {
  const handle = await open(file, "a+");
  try {
    let { size: have } = await handle.stat();
    if (have > sizeBytes) {
      await handle.truncate(0);
      have = 0;
    }
    let hash = await hashOf(file, have);
    report(have);
    if (have < sizeBytes) {
      const headers: Record<string, string> = have > 0 ? { range: `bytes=${have}-` } : {};
      const received = await source.send(`blobs/${digest}`, { headers, signal });
      if (have > 0 && !continues(received, have)) {
        await handle.truncate(0);
        [have, hash] = [0, createHash("sha256")];
        if (received.status === 206) {
          discard(received);
          throw cutOff();
        }
      }
      have = await append(handle, received, { have, hash, sizeBytes, signal, report });
    }
    if (have < sizeBytes) throw cutOff();
    const actual = `sha256:${hash.digest("hex")}`;
    if (actual === digest) return;
    await handle.truncate(0);
    throw new WrongDigest("broken", `the layer ${digest} has the content of ${actual}`);
  } finally {
    await handle.close();
  }
}

interface Progress {
  have: number;
  hash: Hash;
  sizeBytes: number;
  signal: AbortSignal;
  report(have: number): void;
}

async function append(
  handle: FileHandle,
  { body }: Received,
  { have: start, hash, sizeBytes, signal, report }: Progress,
): Promise<number> {
  let have = start;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (have + chunk.length > sizeBytes)
        throw broken(`a layer is longer than the ${sizeBytes} bytes that its manifest says`);
      hash.update(chunk);
      await handle.write(chunk);
      have += chunk.length;
      report(have);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RegistryProblem || isDiskFull(error)) throw error;
    throw cutOff(error);
  } finally {
    body.destroy();
  }
  return have;
}

const cutOff = (cause?: unknown): RegistryProblem =>
  new RegistryProblem("unreachable", "the connection broke during a layer", { cause });

/** Whether the answer begins at the byte that was asked for; a registry without ranges sends everything. */
function continues({ status, headers }: Received, have: number): boolean {
  return status === 206 && new RegExp(`^bytes ${have}-`).test(headers["content-range"] ?? "");
}

async function hashOf(file: string, bytes: number): Promise<Hash> {
  const hash = createHash("sha256");
  if (bytes > 0) for await (const chunk of createReadStream(file, { end: bytes - 1 })) hash.update(chunk);
  return hash;
}

const sizeOf = async (file: string): Promise<number> => (await stat(file).catch(() => null))?.size ?? 0;
