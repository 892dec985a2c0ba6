import type { Store } from "../store.ts";
import type { Resource } from "./resource.ts";
import type { NewEvent } from "./resources.ts";

/** Adds an event to a resource, unless it repeats the last one: repetitions would only push out other events. */
export async function noteEvent(
  { resources }: Pick<Store, "resources">,
  { workspace, uid }: Resource,
  event: NewEvent,
): Promise<void> {
  await resources.update(workspace, uid, ({ events }) => {
    const last = events.at(-1);
    return last?.type === event.type && last.message === event.message ? null : { event };
  });
}
