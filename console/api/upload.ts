/**
 * A file of any size into a sandbox. Large files go in parts; the browser remembers which upload belongs to which file,
 * so that an upload that broke off, or whose page was closed, goes on with the parts that are missing.
 */
import { ApiFailure } from "./failure.ts";
import { callWorkload, type Workload } from "./workload.ts";

/** Below the gateway's limit of a request, and small enough that a broken part costs little. */
export const PART_BYTES = 8 * 2 ** 20;
/** Tries of a part when the server cannot be reached. */
const TRIES_MAX = 4;
const AGAIN_MS = 1000;

interface Part {
  partNumber: number;
  etag: string;
  size: number;
}

interface Remembered {
  uploadId: string;
  size: number;
  lastModified: number;
}

/** `onProgress` gets the part that is there, from 0 to 1. */
export async function uploadFile(
  workload: Workload,
  path: string,
  file: File,
  onProgress: (part: number) => void,
): Promise<void> {
  if (file.size <= PART_BYTES) {
    await callWorkload(workload, { method: "PUT", path: `/filesystem/${encodeURIComponent(path)}`, body: file });
    return onProgress(1);
  }
  const key = `console.upload/${workload.workspace}/${workload.name}${path}`;
  const { uploadId, parts } = (await begun(workload, key, file)) ?? (await begin(workload, key, path, file));
  const there = new Map(parts.map((part) => [part.partNumber, part]));
  const count = Math.ceil(file.size / PART_BYTES);
  for (let number = 1; number <= count; number += 1) {
    const piece = file.slice((number - 1) * PART_BYTES, number * PART_BYTES);
    if (there.get(number)?.size !== piece.size) there.set(number, await sendPart(workload, uploadId, number, piece));
    onProgress(number / count);
  }
  const body = { parts: [...there.values()].map(({ partNumber, etag }) => ({ partNumber, etag })) };
  await callWorkload(workload, { method: "POST", path: `${partsAt(uploadId)}/complete`, body });
  localStorage.removeItem(key);
}

/** The id is the sandbox's own word. */
const partsAt = (uploadId: string): string => `/filesystem-multipart/${encodeURIComponent(uploadId)}`;

/** The upload of this very file that broke off; null when there is none. */
async function begun(workload: Workload, key: string, file: File): Promise<{ uploadId: string; parts: Part[] } | null> {
  const note = JSON.parse(localStorage.getItem(key) ?? "null") as Remembered | null;
  if (note === null || note.size !== file.size || note.lastModified !== file.lastModified) return null;
  // The sandbox may have forgotten it: uploads are kept for a day.
  return callWorkload<{ uploadId: string; parts: Part[] }>(workload, {
    path: `${partsAt(note.uploadId)}/parts`,
  }).catch((error: unknown) => {
    if (error instanceof ApiFailure && error.status === 404) return null;
    throw error;
  });
}

async function begin(workload: Workload, key: string, path: string, { size, lastModified }: File) {
  const { uploadId } = await callWorkload<{ uploadId: string }>(workload, {
    method: "POST",
    path: `/filesystem-multipart/initiate/${encodeURIComponent(path)}`,
    body: {},
  });
  localStorage.setItem(key, JSON.stringify({ uploadId, size, lastModified } satisfies Remembered));
  return { uploadId, parts: [] as Part[] };
}

async function sendPart(workload: Workload, uploadId: string, number: number, piece: Blob): Promise<Part> {
  for (let tries = 1; ; tries += 1)
    try {
      const path = `${partsAt(uploadId)}/part?partNumber=${number}`;
      return await callWorkload<Part>(workload, { method: "PUT", path, body: piece });
    } catch (error) {
      // A refusal stays one; only a server that cannot be reached is asked again.
      if (!(error instanceof ApiFailure) || error.status !== 0 || tries === TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, tries * AGAIN_MS));
    }
}
