/** Calls any operation by its id, for operations without a command of their own. */
import type { Operation } from "../../contract/operation.ts";
import { nearestWord } from "../../lib/nearest-word.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text, texts } from "../command.ts";
import { memberAt, parsePairs } from "../json-path.ts";
import { PAGES, type RowsOf } from "../lists.ts";
import { paramsFrom } from "../nouns.ts";
import { render } from "../output.ts";
import { connect, positiveNumber, queryFrom, variablesOf } from "./call-input.ts";
import { print } from "./show.ts";

export const runOperation = (operation: Operation, path: string, call: Invocation): Promise<undefined> =>
  send(operation, paramsFrom(operation, path), call);

export function callOperation(operations: readonly Operation[], call: Invocation): Promise<undefined> {
  const id = text(call.args[0]) ?? "";
  const operation = operations.find((candidate) => candidate.id === id);
  if (!operation) {
    const near = nearestWord(
      id,
      operations.map((candidate) => candidate.id),
    );
    throw new UsageError(
      `there is no operation '${id}'.${near ? ` Did you mean ${near}?` : ""}`,
      "`berth operations` lists them",
    );
  }
  const params = parsePairs(texts(call.options.param));
  refuseUnknown(operation, Object.keys(params));
  const missing = operation.params.filter((name) => !params[name]);
  if (missing.length > 0) {
    throw new UsageError(`${id} needs ${missing.join(", ")}.`, missing.map((name) => `--param ${name}=…`).join(" "));
  }
  return send(operation, params, call);
}

function refuseUnknown({ id, params }: Operation, given: readonly string[]): void {
  const unknown = given.find((name) => !params.includes(name));
  if (unknown === undefined) return;
  const near = nearestWord(unknown, params);
  throw new UsageError(
    `${id} has no parameter '${unknown}'.${near ? ` Did you mean ${near}?` : ""}`,
    params.length > 0 ? params.map((name) => `--param ${name}=…`).join(" ") : "members of the query go with --query",
  );
}

async function send(operation: Operation, params: Record<string, string>, call: Invocation): Promise<undefined> {
  if (operation.events) return follow(operation, params, call);
  const body = await bodyOf(call);
  const answer = await connect(call).call(operation, {
    params,
    query: queryFrom(call),
    ...(body === undefined ? {} : { body }),
  });
  if (answer === null) call.context.note("done");
  else if (PAGES[operation.id] && (text(call.options.output) ?? "table") === "table")
    await printPage(answer, PAGES[operation.id], call);
  else await print(call, null, Array.isArray(answer) ? "table" : "pretty", answer);
}

async function printPage(answer: unknown, rowsOf: RowsOf | undefined, call: Invocation): Promise<void> {
  const rows = memberAt(answer, "data");
  const [value, cursor] = [Array.isArray(rows) ? rows : [], memberAt(answer, "meta.nextCursor")];
  if (value.length === 0) call.context.note("nothing");
  else call.context.print(await render({ value, format: "table", rowsOf }, call.context));
  if (typeof cursor === "string" && cursor !== "") call.context.note(`more: add --query cursor=${cursor}`);
}

/** Prints each event as a line of JSON, until the server ends the stream. */
async function follow(operation: Operation, params: Record<string, string>, call: Invocation): Promise<undefined> {
  let left = positiveNumber(call.options.events, "--events") ?? Number.POSITIVE_INFINITY;
  for await (const { event, data } of connect(call).events(operation, { params, query: queryFrom(call) })) {
    call.context.print(JSON.stringify({ event, ...(data as object) }));
    left -= 1;
    if (left <= 0) return undefined;
  }
  return undefined;
}

async function bodyOf(call: Invocation): Promise<unknown> {
  const data = text(call.options.data);
  const [file, ...more] = texts(call.options.file);
  if (more.length > 0 || (data !== undefined && file !== undefined)) throw new UsageError("only one body can be sent.");
  if (file !== undefined) {
    const { readBody } = await import("../manifest.ts");
    return readBody(file, variablesOf(call), call.context);
  }
  if (data === undefined) return undefined;
  try {
    return JSON.parse(data) as unknown;
  } catch (error) {
    throw new UsageError(`--data is not JSON: ${(error as Error).message}`);
  }
}
