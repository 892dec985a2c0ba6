/** A request whose signature holds, with the drive that it is about; and the answer that an operation gives. */
import type { FileHandle } from "node:fs/promises";
import type { Clock } from "../lib/time/clock.ts";
import type { DriveObjects } from "./files/drive-objects.ts";
import { type KeyPath, pathOfKey } from "./files/keys.ts";
import type { Turn } from "./list-turns.ts";
import type { Payload } from "./wire/payload.ts";
import { S3Error } from "./wire/s3-error.ts";
import type { S3Request } from "./wire/s3-request.ts";
import type { XmlElement } from "./wire/xml-writer.ts";

/** What the caller may do with the drive, as the drive's permissions say. */
export interface Access {
  canWrite: boolean;
  /** Names of the folder that the caller may use; empty for the whole drive. */
  floor: readonly string[];
}

export interface DriveBucket {
  name: string;
  createdMs: number;
}

/** `next`: `after` of the next page; empty on the last one. Throws S3Error for an `after` that is none. */
export type BucketLister = (page: { after: string; max: number }) => Promise<{ buckets: DriveBucket[]; next: string }>;

export interface S3Call {
  request: S3Request;
  bucket: DriveBucket;
  objects: DriveObjects;
  access: Access;
  region: string;
  clock: Clock;
  payload(): Payload;
  /** Runs a walk through the drive's files when it is its turn. The signal ends it. */
  turn: Turn;
}

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  xml?: XmlElement;
  /** Bytes of a file, closed by whoever sends them. */
  file?: { handle: FileHandle; start: number; bytes: number };
}

/** The path of a key that the caller may use; refused otherwise. */
export function allowedPath(key: string, { floor }: Access): KeyPath {
  const path = pathOfKey(key);
  const names = [...path.parents, path.name];
  const isBelow = floor.every((name, index) => names[index] === name);
  if (!isBelow || (names.length === floor.length && !path.isFolder))
    throw new S3Error(
      "AccessDenied",
      `The permissions of the drive open /${floor.join("/")} to you, and not this key.`,
    );
  return path;
}

export const noSuchKey = (key: string): S3Error =>
  new S3Error("NoSuchKey", "The specified key does not exist.", { Key: key });
