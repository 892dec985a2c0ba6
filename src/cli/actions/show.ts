/** Shows a result once, or repeatedly with --watch. */
import type { Client } from "../../client/client.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { WATCH_SECONDS_DEFAULT } from "../commands/options.ts";
import { LISTS } from "../lists.ts";
import type { Noun } from "../nouns.ts";
import { type Format, render } from "../output.ts";
import { hasMetadata, positiveNumber } from "./call-input.ts";

/** Shortest interval in seconds; less is load without news. */
const WATCH_SECONDS_MIN = 0.1;
const CLEAR_SCREEN = "\u001B[H\u001B[2J\u001B[3J";

export async function show(
  call: Invocation,
  noun: Noun | null,
  byDefault: Format,
  read: () => Promise<unknown>,
  client: Client | null = null,
): Promise<undefined> {
  if (call.options.watch !== true) return print(call, noun, byDefault, await read());
  const seconds = positiveNumber(call.options.interval, "--interval");
  if (seconds !== undefined && seconds < WATCH_SECONDS_MIN)
    throw new UsageError(`--interval must be at least ${WATCH_SECONDS_MIN}.`);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const news = (await import("./news.ts")).newsOf(noun, client, stop.signal);
  let last: string | null = null;
  while (!stop.signal.aborted) {
    const next = await rendered(call, noun, byDefault, await read());
    if (next !== last) call.context.print(call.context.isTerminal ? CLEAR_SCREEN + next : next);
    last = next;
    await news.wait(seconds, WATCH_SECONDS_DEFAULT);
  }
  return undefined;
}

export async function print(
  call: Invocation,
  noun: Noun | null,
  byDefault: Format,
  value: unknown,
): Promise<undefined> {
  const shown = await rendered(call, noun, byDefault, value);
  if (shown !== "") call.context.print(shown);
}

async function rendered(call: Invocation, noun: Noun | null, byDefault: Format, value: unknown): Promise<string> {
  const format = (text(call.options.output) as Format | undefined) ?? byDefault;
  if (Array.isArray(value) && value.length === 0 && format === "table") {
    call.context.note(noun ? `no ${noun.plural}` : "nothing");
    return "";
  }
  return render({ value, format, ...(noun ? shapeOf(noun) : {}) }, call.context);
}

const shapeOf = (noun: Noun) => ({
  kind: noun.kind,
  rowsOf: LISTS[noun.name],
  manifestKind: hasMetadata(noun) ? manifestKindOf(noun) : null,
  itemParam: (noun.verbs.get("get") ?? noun.verbs.get("delete"))?.params.at(-1) ?? null,
});

/** `volume-template` is written VolumeTemplate in manifests. */
const manifestKindOf = ({ name }: Noun): string =>
  name.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
