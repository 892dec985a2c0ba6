/** list, get, create, update and delete, the same for every noun. */
import { ApiError } from "../../client/api-error.ts";
import { canRehearse } from "../../contract/dry-run.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text, texts } from "../command.ts";
import { isObject, memberAt, setMember } from "../json-path.ts";
import { type Noun, operationOf, paramsFrom } from "../nouns.ts";
import { nameOf } from "../table.ts";
import { bodyFrom, connect, namePathOf, positiveNumber, queryFrom } from "./call-input.ts";
import { type Change, finishChanges, reportChange } from "./changes.ts";
import { confirmWorkspaces } from "./confirm-workspaces.ts";
import { deleteNamed } from "./delete-named.ts";
import { print, show } from "./show.ts";

/** The server's largest page size. */
const PAGE_MAX = 200;

export function list(noun: Noun, parent: string, call: Invocation): Promise<undefined> {
  const operation = operationOf(noun, "list");
  const params = paramsFrom(operation, parent);
  const limit = positiveNumber(call.options.limit, "--limit");
  const query = {
    ...queryFrom(call),
    sort: text(call.options.sort),
    q: text(call.options.search),
    label: text(call.options.label),
    status: text(call.options.status),
    ...(limit !== undefined && operation.paged ? { limit: Math.min(limit, PAGE_MAX) } : {}),
  };
  const client = connect(call);
  return show(
    call,
    noun,
    "table",
    async () => {
      const rows: unknown[] = [];
      for await (const row of client.items(operation, { params, query })) {
        rows.push(row);
        if (rows.length === limit) break;
      }
      return rows;
    },
    client,
  );
}

/** A path that names only the container lists its content. */
export function getOrList(noun: Noun, path: string | undefined, call: Invocation): Promise<undefined> {
  const listing = noun.verbs.get("list");
  const depth = path === undefined ? 0 : path.split("/").length;
  const wanted = (noun.verbs.get("get") ?? noun.verbs.get("delete"))?.params.length ?? 1;
  return listing && depth < wanted && depth === listing.params.length
    ? list(noun, path ?? "", call)
    : get(noun, path ?? "", call);
}

export function get(noun: Noun, path: string, call: Invocation): Promise<undefined> {
  const operation = noun.verbs.get("get");
  if (!operation) return find(noun, path, call);
  const input = { params: paramsFrom(operation, path), query: queryFrom(call) };
  const client = connect(call);
  return show(call, noun, "pretty", () => client.call(operation, input), client);
}

/** Kinds without a get operation are found in their list. */
function find(noun: Noun, path: string, call: Invocation): Promise<undefined> {
  const operation = operationOf(noun, "list");
  const [parent, name] = splitPath(path, operation.params.length);
  const input = { params: paramsFrom(operation, parent), query: queryFrom(call) };
  const client = connect(call);
  return show(
    call,
    noun,
    "pretty",
    async () => {
      for await (const row of client.items(operation, input)) if (isCalled(row, name)) return row;
      throw new ApiError({ status: 404, code: "not_found", message: `There is no ${noun.name} '${name}'.` });
    },
    client,
  );
}

/** Matches any member that names the row: `name`, `email`, `id`, `client_id`. */
const isCalled = (row: unknown, name: string): boolean =>
  memberAt(row, "metadata.name") === name ||
  (isObject(row) && Object.entries(row).some(([key, value]) => value === name && /^(name|sub|email|.*id)$/i.test(key)));

export async function create(noun: Noun, path: string, call: Invocation): Promise<undefined> {
  const operation = operationOf(noun, "create");
  const [parent, name] = splitPath(path, operation.params.length);
  const params = paramsFrom(operation, parent);
  const body = await bodyFrom(noun, call);
  if (name !== "") setMember(body, namePathOf(noun), name);
  const made = await connect(call).call(operation, { params, body, query: queryFrom(call) });
  call.context.note(`${noun.name} '${nameOf(made) || name}' created`);
  return print(call, noun, "pretty", made);
}

export async function update(noun: Noun, path: string, call: Invocation): Promise<undefined> {
  const operation = operationOf(noun, "update");
  const params = paramsFrom(operation, path);
  const client = connect(call);
  const reading = texts(call.options.file).length === 0 ? noun.verbs.get("get") : undefined;
  const current = reading ? await client.send(reading, { params }) : null;
  const body = await bodyFrom(noun, call, isObject(current?.body) ? current.body : null);
  const etag = current?.headers.get("etag");
  // Sent with the ETag, so that a concurrent change is not overwritten.
  const headers = etag ? { "if-match": etag } : {};
  const changed = await client.call(operation, { params, body, headers, query: queryFrom(call) });
  call.context.note(`${noun.name} '${path}' configured`);
  return print(call, noun, "pretty", changed);
}

export async function remove(noun: Noun, paths: readonly string[], call: Invocation): Promise<number | undefined> {
  const operation = operationOf(noun, "delete");
  if (paths.length === 0) throw new UsageError(`which ${noun.name}?`, `berth delete ${noun.name} NAME, or -f FILE`);
  const inputs = paths.map((path) => ({ path, params: paramsFrom(operation, path) }));
  const client = connect(call);
  const trial = call.options.dryRun === true;
  const acting = trial && !canRehearse(operation) ? operationOf(noun, "get") : operation;
  const query = trial ? { dryRun: canRehearse(operation) ? true : undefined } : queryFrom(call);
  const changes: Change[] = [];
  if (noun.name === "workspace" && !trial) await confirmWorkspaces(noun, inputs, client, call);
  for (const { path, params } of inputs) {
    const change = { kind: noun.name, name: path };
    const act = (found: Record<string, string>) => client.call(acting, { params: found, query });
    const work = deleteNamed(noun, params, client, act).then(
      (): Change => ({ ...change, outcome: trial ? "would be deleted" : "deleted" }),
      (error: unknown): Change => ({ ...change, outcome: "failed", error }),
    );
    changes.push(reportChange(await work, call));
  }
  return finishChanges(changes, call);
}

/** The first segments name the containers, the rest is the name. */
function splitPath(path: string, parents: number): [parent: string, name: string] {
  const parts = path === "" ? [] : path.split("/");
  return [parts.slice(0, parents).join("/"), parts.slice(parents).join("/")];
}
