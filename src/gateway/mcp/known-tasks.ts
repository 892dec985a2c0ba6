/**
 * The tools of the latest tasks: lists of servers name tasks without saying whose they are. All functions share the
 * room, and one that begins a great many tasks pushes out its own.
 */
import { hash } from "node:crypto";

const KNOWN_MAX = 10_000;

export class KnownTasks {
  /** By function, then by task; the oldest first. */
  readonly #shares = new Map<string, Map<string, string | null>>();
  #size = 0;

  /** The tool of a task, null when the gateway has not seen the call; undefined for a task that is not known. */
  toolOf(uid: string, task: string): string | null | undefined {
    return this.#shares.get(uid)?.get(placeOf(task));
  }

  remember(uid: string, task: string, tool: string | null): void {
    const share = this.#shares.get(uid) ?? new Map<string, string | null>();
    this.#shares.set(uid, share);
    const place = placeOf(task);
    if (!share.delete(place)) this.#size += 1;
    share.set(place, tool);
    if (this.#size > KNOWN_MAX) this.#dropOldest();
  }

  #dropOldest(): void {
    const [uid, share] = [...this.#shares].reduce((most, one) => (one[1].size > most[1].size ? one : most));
    const [oldest = ""] = share.keys();
    if (share.delete(oldest)) this.#size -= 1;
    if (share.size === 0) this.#shares.delete(uid);
  }
}

/** Of one length, however long the ids of a server are. */
const placeOf = (task: string): string => hash("sha256", task, "base64");
