/** Deleting a workspace deletes everything in it, so the user must confirm, or pass --yes. */
import type { Client } from "../../client/client.ts";
import { UsageError } from "../../lib/usage-error.ts";
import type { Invocation } from "../command.ts";
import { isObject } from "../json-path.ts";
import { type Noun, operationOf } from "../nouns.ts";

export async function confirmWorkspaces(
  noun: Noun,
  inputs: readonly { path: string; params: Record<string, string> }[],
  client: Client,
  call: Invocation,
): Promise<void> {
  if (call.options.yes === true) return;
  for (const { path, params } of inputs) {
    const found = await client.call(operationOf(noun, "get"), { params, query: { countResources: "true" } });
    const content = contentOf(found);
    if (content === "") continue;
    if (!call.context.canAsk)
      throw new UsageError(`workspace '${path}' is not empty: it has ${content}`, "add --yes to delete all of it");
    const answer = await call.context.ask(`workspace '${path}' has ${content}. Type its name to delete all of it: `);
    if (answer?.trim() !== path) throw new UsageError(`workspace '${path}' was not deleted`, "nothing was changed");
  }
}

/** "2 drives, 1 policies"; "" for an empty workspace. */
function contentOf(workspace: unknown): string {
  const counts = isObject(workspace) && isObject(workspace.resourceCounts) ? workspace.resourceCounts : {};
  return Object.entries(counts)
    .filter(([, count]) => Number(count) > 0)
    .map(([word, count]) => `${count} ${word}`)
    .join(", ");
}
