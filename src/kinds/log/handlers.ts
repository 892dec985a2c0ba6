import type { z } from "zod";
import { PlatformError } from "../../contract/errors.ts";
import { keptOf, mayEnter } from "../../contract/kept-access.ts";
import { SEVERITY_NAMES, type SeverityName } from "../../contract/log-line.ts";
import { DAY_MS, HOUR_MS, toIso } from "../../lib/time/clock.ts";
import { addHistogram, emptyHistogram } from "../../node/logs/histogram.ts";
import type { StoredLine } from "../../node/logs/log-line.ts";
import type { LogQuery } from "../../node/logs/log-store.ts";
import { KINDS } from "../index.ts";
import { type Call, type Implementation, implement, implementEvents, type Platform, workspaceOf } from "../port.ts";
import { requireEntry } from "../sandbox/kept.ts";
import { type TimeRange, timeOf, rangeOf as timeRangeOf } from "../time-range.ts";
import { type Found, followStream } from "./follow.ts";
import {
  BUCKETS_DEFAULT,
  BUCKETS_MAX,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  logFollow,
  logHistogram,
  logQuery,
} from "./operations.ts";

/** Images have no kind of their own, but builds with a log. */
const LOGGED: readonly { name: string; plural: string }[] = [...KINDS, { name: "image", plural: "images" }];
const RANGE_DEFAULT_MS = HOUR_MS;
const RANGE_MAX_MS = 3 * DAY_MS;
/** Workloads whose logs one query reads. */
const WORKLOADS_MAX = 50;

/** Bytes of the lines in one answer, over all workloads. The rest is asked for with an offset. */
export const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

type Query = z.output<NonNullable<typeof logQuery.query>>;
type Narrowing = z.output<NonNullable<typeof logFollow.query>> & Pick<Query, "offset">;
type Answer = z.input<typeof logQuery.response>;

export const logHandlers: readonly Implementation[] = [
  implement(logQuery, async (call, deps) => {
    const { name: workspace, createdAt } = workspaceOf(call);
    const { query } = call;
    const kind = kindOf(query.resourceType);
    const range = rangeOf(query, deps.clock.now());
    const asked: Omit<LogQuery, "name" | "uid"> = {
      ...members(query),
      workspace,
      plural: kind.plural,
      // The name may have belonged to another workspace before this one was created.
      fromMs: Math.max(range.fromMs, createdAt),
      toMs: range.toMs,
      ...(query.after === undefined ? {} : { afterUs: microsecondsOf("after", query.after) }),
      ...(query.before === undefined ? {} : { beforeUs: microsecondsOf("before", query.before) }),
      limit: Math.min(query.limit ?? LIMIT_DEFAULT, LIMIT_MAX),
    };
    const answer: Answer = {};
    let bytesLeft = ANSWER_BYTES_MAX;
    const missing = new Set<string>();
    for (const workload of await workloadsOf(query.workloadIds, kind.name, asked, deps)) {
      const readable = await readableOf(workload, kind.name, call, deps);
      if (!readable) continue;
      const page = await deps.allLogs.query({ ...asked, ...readable, bytesMax: bytesLeft });
      const { lines, total, bytes, cut, servers } = page;
      bytesLeft -= bytes;
      for (const name of page.missing) missing.add(name);
      if (cut) call.warn(shortened(workload.name, lines.length + (query.offset ?? 0)));
      answer[workload.name] = { logs: lines.map(toWire), totalCount: total, server: servers.join(", ") };
    }
    for (const name of missing) call.warn(`The node '${name}' does not answer: lines that it keeps are missing.`);
    return answer;
  }),

  implement(logHistogram, async (call, deps) => {
    const { name: workspace, createdAt } = workspaceOf(call);
    const { query } = call;
    const kind = kindOf(query.resourceType);
    const { fromMs, toMs } = rangeOf(query, deps.clock.now());
    const buckets = Math.min(query.buckets ?? BUCKETS_DEFAULT, BUCKETS_MAX);
    const asked = { ...members(query), workspace, plural: kind.plural, fromMs, toMs, limit: 0, buckets };
    const sum = emptyHistogram(buckets);
    const missing = new Set<string>();
    for (const workload of await workloadsOf(query.workloadIds, kind.name, asked, deps)) {
      const readable = await readableOf(workload, kind.name, call, deps);
      if (!readable) continue;
      // The name may have belonged to another workspace before this one was created.
      const found = await deps.allLogs.histogram({ ...asked, ...readable, afterUs: createdAt * 1000 - 1 });
      addHistogram(sum, found.histogram);
      for (const name of found.missing) missing.add(name);
    }
    for (const name of missing) call.warn(`The node '${name}' does not answer: lines that it keeps are missing.`);
    const total = [...sum.info, ...sum.warning, ...sum.error].reduce((all, count) => all + count, 0);
    return { start: toIso(fromMs), end: toIso(toMs), stepMs: (toMs - fromMs) / buckets, ...sum, total };
  }),

  implementEvents(logFollow, async (call, deps) => {
    const { name: workspace, createdAt } = workspaceOf(call);
    const { query } = call;
    const kind = kindOf(query.resourceType);
    const asked = { ...members(query), workspace, plural: kind.plural, limit: LIMIT_MAX };
    const known = call.headers["last-event-id"] ?? query.after;
    const nowMs = deps.clock.now();
    const after = typeof known === "string" ? placeAfter(known, nowMs) : null;
    const look = async (fromMs: number, toMs: number): Promise<Found[]> => {
      const found: Found[] = [];
      for (const workload of await workloadsOf(query.workloadIds, kind.name, asked, deps)) {
        const readable = await readableOf(workload, kind.name, call, deps);
        if (!readable) continue;
        const range = { fromMs: Math.max(fromMs, createdAt), toMs };
        const page = await deps.allLogs.query({ ...asked, ...readable, ...range, bytesMax: FOLLOW_BYTES_MAX });
        found.push({ workload: workload.name, lines: page.lines, total: page.total });
      }
      return found;
    };
    // Refuses what may not be read before the stream begins.
    await look(nowMs, nowMs);
    return followStream({ reader: call.caller.subject, after, look, now: () => deps.clock.now(), toWire });
  }),
];

interface Chosen {
  name: string;
  uid?: string;
}

/** The lines of a workload that the caller may read; null: none. Throws when the caller named that workload. */
async function readableOf(
  workload: Chosen,
  kind: string,
  call: Call<{ workloadIds?: string | undefined }>,
  { store }: Platform,
): Promise<Chosen | null> {
  const { name: workspace } = workspaceOf(call);
  const found = await store.resources.get({ workspace, kind, parent: "" }, workload.name);
  if (found && call.query.workloadIds !== undefined) requireEntry(found, call);
  if (found && !mayEnter(keptOf(found), call.role)) return null;
  if (kind !== "sandbox" || call.role === "admin") return workload;
  // An earlier sandbox of this name may have been kept to some roles, which nobody knows any more.
  return { name: workload.name, uid: found?.uid ?? "none" };
}

function placeAfter(timestamp: string, nowMs: number): { fromMs: number; us: number } {
  const us = microsecondsOf("after", timestamp);
  return { fromMs: Math.max(Math.floor(us / 1000), nowMs - RANGE_DEFAULT_MS), us };
}

/** The time of a line: no two lines of a workload have the same. */
const microsecondsOf = (field: string, timestamp: string): number =>
  timeOf(field, timestamp) * 1000 + Number(MICROSECONDS.exec(timestamp)?.[1] ?? 0);

/** The digits of a timestamp below a millisecond. */
const MICROSECONDS = /\.\d{3}(\d{3})/;
/** Bytes of the lines of one workload that one look reads. */
const FOLLOW_BYTES_MAX = 1024 * 1024;

function kindOf(plural: string): (typeof LOGGED)[number] {
  const kind = LOGGED.find((one) => one.plural === plural);
  if (!kind) throw new PlatformError("bad_request", `resourceType: there is no kind '${plural}'.`);
  return kind;
}

const shortened = (name: string, offset: number): string =>
  `The answer would be too long, so lines of '${name}' were left out: ask for them with offset=${offset}.`;

function members({ type, severity, offset, search, traceId, executionId, taskId, revision }: Omit<Narrowing, "after">) {
  return {
    ...(type === undefined || type === "all" ? {} : { source: type }),
    ...(severity === undefined ? {} : { severities: severitiesOf(severity) }),
    ...(offset === undefined ? {} : { offset }),
    ...(search === undefined ? {} : { search }),
    ...(traceId === undefined ? {} : { traceId }),
    ...(executionId === undefined ? {} : { executionId }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(revision === undefined ? {} : { revision }),
  };
}

/** Accepts names and ids. An id is resolved to the resource that has it now and selects only that resource's lines. */
async function workloadsOf(
  ids: string | undefined,
  kind: string,
  { workspace, plural }: Pick<LogQuery, "workspace" | "plural">,
  { store, allLogs }: Platform,
): Promise<Chosen[]> {
  const words = ids
    ?.split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
  if (words === undefined)
    return (await allLogs.names(workspace, plural)).slice(0, WORKLOADS_MAX).map((name) => ({ name }));
  if (words.length > WORKLOADS_MAX)
    throw new PlatformError("bad_request", `workloadIds: at most ${WORKLOADS_MAX} at a time.`);
  return Promise.all(
    words.map(async (word) => {
      const found = UUID.test(word) ? await store.resources.getByUid(workspace, word) : null;
      return found?.kind === kind ? { name: found.name, uid: found.uid } : { name: word };
    }),
  );
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Range = Pick<Query, "start" | "end"> & Partial<Pick<Query, "after" | "before">>;

/** A line that the list begins or ends with stands for the time that is left out. */
const rangeOf = ({ after, before, start = after, end = before }: Range, nowMs: number): TimeRange =>
  timeRangeOf({ start, end }, { nowMs, defaultMs: RANGE_DEFAULT_MS, maxMs: RANGE_MAX_MS });

function severitiesOf(text: string): SeverityName[] {
  return text.split(",").map((each) => {
    const name = SEVERITY_NAMES.find((candidate) => candidate === each.trim().toUpperCase());
    if (!name) throw new PlatformError("bad_request", `severity: must be among ${SEVERITY_NAMES.join(", ")}.`);
    return name;
  });
}

const toWire = (line: StoredLine): Answer[string]["logs"][number] => ({
  timestamp: timestampOf(line.timeUs),
  message: line.message,
  severity: line.severity,
  trace_id: line.traceId ?? "",
  type: line.source,
  ...(line.revision === undefined ? {} : { revision: line.revision }),
  ...(line.executionId === undefined ? {} : { execution_id: line.executionId }),
  ...(line.taskId === undefined ? {} : { task_id: line.taskId }),
  ...(line.attributes === undefined ? {} : { attributes: line.attributes }),
});

const timestampOf = (us: number): string =>
  `${toIso(Math.floor(us / 1000)).slice(0, -1)}${String(us % 1000).padStart(3, "0")}000Z`;
