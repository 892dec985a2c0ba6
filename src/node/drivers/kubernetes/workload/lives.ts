/**
 * Tells whether a workload still has the life that a door token is of. The API server is asked once for each life; the
 * mirror says when to ask again.
 */
import type { Mirror } from "../client/mirror.ts";
import { digestOf } from "../objects/names.ts";
import type { Fleet } from "./fleet.ts";
import { hasEnded } from "./observed.ts";
import type { WorkloadRecord } from "./record.ts";

export type Life = Pick<WorkloadRecord, "uid" | "id">;

export interface LivesOptions {
  fleet: Pick<Fleet, "find">;
  mirror: Pick<Mirror, "onChange">;
}

export class Lives {
  readonly #options: LivesOptions;
  /** Look-ups whose answer still holds, by uid. Only workloads that live stay here. */
  readonly #known = new Map<string, Promise<string | null>>();

  constructor(options: LivesOptions) {
    this.#options = options;
  }

  async isCurrent({ uid, id }: Life): Promise<boolean> {
    const known = this.#known.get(uid) ?? this.#ask(uid);
    return (await known) === id;
  }

  /** Calls `onEnd` when the workload has another life or none; the answer stops that. */
  watch(life: Life, onEnd: () => void): () => void {
    return this.#onChange(life.uid, () => {
      // While the API server does not answer, what is open stays open.
      this.isCurrent(life).then(
        (isCurrent) => isCurrent || onEnd(),
        () => {},
      );
    });
  }

  #ask(uid: string): Promise<string | null> {
    const forget = (): void => {
      off();
      if (this.#known.get(uid) === asked) this.#known.delete(uid);
    };
    const off = this.#onChange(uid, forget);
    const asked = this.#idOf(uid);
    this.#known.set(uid, asked);
    asked.then((id) => id === null && forget(), forget);
    return asked;
  }

  async #idOf(uid: string): Promise<string | null> {
    const found = await this.#options.fleet.find(uid);
    return found && !hasEnded(found.pod) ? found.record.id : null;
  }

  #onChange(uid: string, listener: () => void): () => void {
    return this.#options.mirror.onChange(digestOf(uid), listener);
  }
}
