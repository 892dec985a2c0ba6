/** `berth logs`: the lines a workload has written, and with -f new ones. */
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import { severityName } from "../../contract/log-line.ts";
import type { Operation } from "../../contract/operation.ts";
import { printable, printableJson } from "../../lib/printable.ts";
import { parseDurationMs } from "../../lib/time/duration.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { connect, positiveNumber } from "./call-input.ts";

export interface Line {
  timestamp: string;
  message: string;
  severity: number;
  trace_id: string;
  task_id?: string;
  revision?: string;
}

interface Page {
  logs: Line[];
  totalCount: number;
}

const SINCE_DEFAULT = "1h";
const PAGE = 1000;
/** Pause before a broken connection is made again. */
const AGAIN_MS = 1000;

export async function logs(nouns: readonly Noun[], call: Invocation): Promise<undefined> {
  const { noun, name } = subjectOf(nouns, call);
  const { options, context } = call;
  const operation = operationOf(findNoun(nouns, "log"), "query");
  const client = connect(call);
  const query = {
    resourceType: noun.kind?.plural ?? noun.plural,
    workloadIds: name,
    executionId: text(options.execution),
    taskId: text(options.task),
    severity: text(options.severity),
    search: text(options.search),
    type: options.build === true ? "build" : undefined,
  };
  const sinceMs = parseDurationMs(text(options.since) ?? SINCE_DEFAULT);
  if (sinceMs === null) throw new UsageError("--since is not a duration.", "write it as 30s, 15m, 2h or 3d");
  const limit = positiveNumber(options.limit, "--limit") ?? Number.POSITIVE_INFINITY;
  const show = (line: Line): void => context.print(shown(line, call));
  const reader = createReader(client, operation, query);
  const startedMs = context.now();
  const written = await reader.read(context.now() - sinceMs, limit);
  // A deleted workload may still have lines; without lines the workload must exist.
  if (written.length === 0) await requireWorkload(noun, name, client);
  for (const line of written) show(line);
  if (options.follow !== true) return undefined;
  const after = written.at(-1)?.timestamp ?? new Date(startedMs).toISOString();
  return follow(client, operationOf(findNoun(nouns, "log"), "follow"), { ...query, after }, call, show);
}

interface Told {
  workload: string;
  logs?: Line[];
  count?: number;
}

/** Shows new lines as the server tells them; a connection that breaks is made again from the last line on. */
async function follow(
  client: Client,
  operation: Operation,
  query: Record<string, string | undefined>,
  { context }: Invocation,
  show: (line: Line) => void,
): Promise<never> {
  for (let after = query.after; ; await pause(AGAIN_MS)) {
    try {
      for await (const { event, data } of client.events(operation, { query: { ...query, after } })) {
        const { logs: lines = [], count = 0 } = data as Told;
        if (event === "gap") context.note(`${count} lines came faster than they can be shown and are left out.`);
        for (const line of lines) show(line);
        after = lines.at(-1)?.timestamp ?? after;
      }
    } catch (error) {
      // A refusal stays one; a server that restarts is back soon.
      if (error instanceof ApiError && error.status > 0 && error.status < 500 && error.status !== 429) throw error;
      context.note("The connection is lost; trying again.");
    }
  }
}

async function requireWorkload(noun: Noun, name: string, client: Client): Promise<void> {
  const get = operationOf(noun, "get");
  await client.call(get, { params: { [get.params.at(-1) ?? ""]: name } });
}

/** Reads from a time on, oldest first, and never returns a line twice. */
export interface LogReader {
  read(fromMs: number, limit: number): Promise<Line[]>;
}

export function createReader(
  client: Client,
  operation: Operation,
  query: Record<string, string | undefined>,
): LogReader {
  let told = new Set<string>();
  return {
    async read(fromMs, limit) {
      const start = new Date(fromMs).toISOString();
      // New lines shift the pages, so the same line may appear on two pages.
      const newest = new Map<string, Line>();
      for (let offset = 0, total = 1; offset < Math.min(total, limit); ) {
        const page = { limit: Math.min(PAGE, limit - offset), offset, start };
        const answer = (await client.call(operation, { query: { ...query, ...page } })) as Record<string, Page>;
        const [{ logs: lines, totalCount } = { logs: [], totalCount: 0 }] = Object.values(answer);
        for (const line of lines) newest.set(line.timestamp, line);
        offset += lines.length;
        total = lines.length === 0 ? 0 : totalCount;
      }
      const seen = told;
      told = new Set(newest.keys());
      return [...newest.values()].filter(({ timestamp }) => !seen.has(timestamp)).reverse();
    },
  };
}

/** Accepts `agent/echo` and `agent echo`. */
export function subjectOf(nouns: readonly Noun[], { args }: Invocation): { noun: Noun; name: string } {
  const [first = "", second] = [text(args[0]), text(args[1])];
  const slash = first.indexOf("/");
  const [kind, name] = second === undefined ? [first.slice(0, slash), first.slice(slash + 1)] : [first, second];
  if (kind === "" || name === "" || (second === undefined && slash < 1))
    throw new UsageError(`'${first}' does not name a workload.`, "write KIND/NAME, like agent/echo");
  return { noun: findNoun(nouns, kind), name };
}

const LEVEL_WIDTH = 7;

function shown(line: Line, { options }: Invocation): string {
  if (options.output === "json") return printableJson(line);
  const message = printable(line.message);
  if (options.plain === true) return message;
  const task = line.task_id === undefined ? "" : ` [${line.task_id}]`;
  const time = line.timestamp.slice(0, "2026-01-31T12:00:00.000".length);
  return `${time} ${severityName(line.severity).padEnd(LEVEL_WIDTH)}${task} ${message}`;
}
