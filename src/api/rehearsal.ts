/**
 * A dry run (`?dryRun=true`): the request goes its whole way, with every check and every row, and its transaction is
 * rolled back at the end. The answer is the one that the real request would get before anybody acts on the resource.
 */
import { isDryRun } from "../contract/dry-run.ts";
import type { Call, Implementation, Platform } from "../kinds/port.ts";
import type { Transaction } from "../store/database/database.ts";
import type { Store } from "../store/store.ts";

export const isRehearsal = ({ operation, query }: Pick<Call, "operation" | "query">): boolean =>
  isDryRun(operation, query);

/** Handlers of the verbs write only through `store.write`, so rolling back its transaction undoes everything. */
export const rehearsable =
  (handle: Implementation["handle"]): Implementation["handle"] =>
  (call, deps) =>
    handle(call, isRehearsal(call) ? rehearsalOf(deps) : deps);

const rehearsalOf = (deps: Platform): Platform => ({ ...deps, store: { ...deps.store, write: rehearsed(deps.store) } });

/** Carries the result out of a transaction that it ends. */
class Rehearsed extends Error {
  readonly result: unknown;

  constructor(result: unknown) {
    super("The transaction of a dry run is rolled back.");
    this.result = result;
  }
}

const rehearsed =
  ({ write }: Pick<Store, "write">): Store["write"] =>
  async <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
    try {
      return await write(async (tx) => {
        throw new Rehearsed(await work(tx));
      });
    } catch (error) {
      if (error instanceof Rehearsed) return error.result as T;
      throw error;
    }
  };
