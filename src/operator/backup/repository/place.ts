/** Where a repository of backups lies. Keys are plain words with slashes. */
export interface Place {
  /** As the operator wrote it. */
  shown: string;
  /** The whole object is durable afterwards, or nothing of it is there. */
  put(key: string, bytes: Buffer): Promise<void>;
  /** False when the object is there already. */
  putNew(key: string, bytes: Buffer): Promise<boolean>;
  /** Null when there is none. */
  get(key: string): Promise<Buffer | null>;
  /** Keys that begin with the prefix, which ends with a slash. */
  list(prefix: string): AsyncIterable<string>;
  remove(key: string): Promise<void>;
}

/** Objects are chunks and lists of chunks; nothing that a backup writes is larger. */
export const OBJECT_BYTES_MAX = 64 * 1024 * 1024;
