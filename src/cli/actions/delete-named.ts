/** Deletes what the API knows by an id, such as a key, also by the name that it was made with. */
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { memberAt } from "../json-path.ts";
import { type Noun, operationOf } from "../nouns.ts";
import { identityOf } from "../table.ts";

type Params = Record<string, string>;

/** The id wins: the name is looked for only when nothing has this id. */
export async function deleteNamed(
  noun: Noun,
  params: Params,
  client: Client,
  act: (params: Params) => Promise<unknown>,
): Promise<void> {
  try {
    await act(params);
  } catch (error) {
    const id = isMissing(error) ? await idOf(noun, params, client) : null;
    if (id === null) throw error;
    await act(id);
  }
}

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

/** Null when nothing has this name, or the kind is known by its name anyway. */
async function idOf(noun: Noun, params: Params, client: Client): Promise<Params | null> {
  const listing = noun.verbs.get("list");
  const last = operationOf(noun, "delete").params.at(-1) ?? "";
  if (!listing || noun.verbs.has("get") || !last.endsWith("Id")) return null;
  const name = params[last];
  const parents = Object.fromEntries(listing.params.map((param) => [param, params[param] ?? ""]));
  const ids: string[] = [];
  try {
    for await (const row of client.items(listing, { params: parents }))
      if (memberAt(row, "name") === name) ids.push(identityOf(row, last));
  } catch (error) {
    // What contains it does not exist either: the first answer has said so.
    if (isMissing(error)) return null;
    throw error;
  }
  if (ids.length > 1)
    throw new UsageError(`${ids.length} ${noun.plural} are called '${name}'.`, `name one by its id: ${ids.join(", ")}`);
  return ids[0] === undefined ? null : { ...params, [last]: ids[0] };
}
