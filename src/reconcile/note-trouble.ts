import type { Resource } from "../store/resource.ts";
import type { Store } from "../store/store.ts";

/** An event of the resource; the same again says nothing new and would only push others out. */
export async function noteTrouble(
  store: Pick<Store, "resources">,
  { workspace, uid }: Resource,
  type: string,
  message: string,
): Promise<void> {
  await store.resources.update(workspace, uid, (current) => {
    const last = current.events.at(-1);
    return last?.type === type && last.message === message ? null : { event: { type, message } };
  });
}
