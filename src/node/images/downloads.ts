/**
 * Blobs of registries on their way to this machine: one file for each blob and repository, however many pulls want it.
 * The file of a download that failed stays for a while, so that the next pull continues it.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** A blob that is being downloaded or was; released when its file is no longer needed. */
export interface Download extends AsyncDisposable {
  file: string;
  done: Promise<void>;
}

interface Shared {
  file: string;
  users: number;
  ending: AbortController;
  done: Promise<void>;
}

export type Fetch = (file: string, signal: AbortSignal) => Promise<void>;

export class Downloads {
  readonly #dir: string;
  readonly #going = new Map<string, Shared>();
  /** Downloads whose file is still written or about to be removed. */
  readonly #ending = new Map<string, Promise<void>>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Joins the download of the blob, or starts it. It is broken off when everyone who wanted it has released it. */
  async take(repository: string, digest: string, fetch: Fetch): Promise<Download> {
    const name = createHash("sha256").update(`${repository} ${digest}`).digest("hex");
    await mkdir(this.#dir, { recursive: true });
    for (let ended = this.#ending.get(name); ended; ended = this.#ending.get(name)) await ended;
    const shared = this.#going.get(name) ?? this.#start(name, fetch);
    shared.users += 1;
    return {
      file: shared.file,
      done: shared.done,
      [Symbol.asyncDispose]: async () => {
        shared.users -= 1;
        if (shared.users === 0) await this.#end(name, shared);
      },
    };
  }

  async #end(name: string, shared: Shared): Promise<void> {
    if (this.#going.get(name) === shared) this.#going.delete(name);
    shared.ending.abort();
    const ended = shared.done.then(
      () => rm(shared.file, { force: true }),
      () => {}, // what has arrived stays for the next pull
    );
    this.#ending.set(name, ended);
    await ended;
    if (this.#ending.get(name) === ended) this.#ending.delete(name);
  }

  #start(name: string, fetch: Fetch): Shared {
    const [file, ending] = [join(this.#dir, name), new AbortController()];
    const shared: Shared = { file, users: 0, ending, done: fetch(file, ending.signal) };
    this.#going.set(name, shared);
    shared.done.catch(() => {
      // The next pull tries again; those that wait for this one are told.
      if (this.#going.get(name) === shared) this.#going.delete(name);
    });
    return shared;
  }

  /** Removes what earlier downloads left and nobody continued. */
  async sweep(olderThanMs: number): Promise<void> {
    for (const name of await readdir(this.#dir).catch(() => [])) {
      const file = join(this.#dir, name);
      const found = this.#going.has(name) || this.#ending.has(name) ? null : await stat(file).catch(() => null);
      if (found && found.mtimeMs < olderThanMs) await rm(file, { force: true });
    }
  }
}
