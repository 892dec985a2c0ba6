/** The logs of all nodes as one: each node keeps the lines that its workloads wrote, and a workload may have moved. */
import { PlatformError } from "../../contract/errors.ts";
import { addHistogram, emptyHistogram, type Histogram } from "./histogram.ts";
import type { Logs } from "./log-room.ts";
import type { LogPage, LogQuery } from "./log-store.ts";

/** Lines per node that are merged. Further back, the time range must be narrowed. */
const MERGED_MAX = 20_000;
/** The same in bytes: the pages of all nodes are in memory together. */
const MERGED_BYTES_MAX = 16 * 1024 * 1024;

/** The other nodes that keep logs. */
export interface OtherLogs {
  nodes(): { id: string; name: string }[];
  query(node: string, query: LogQuery): Promise<LogPage>;
  names(node: string, workspace: string, plural: string): Promise<string[]>;
}

export interface AllLogs {
  query(query: LogQuery): Promise<LogPage & { servers: string[]; missing: string[] }>;
  /** Counts over all nodes; `missing`: nodes that do not answer, or cannot count yet. */
  histogram(query: LogQuery & { buckets: number }): Promise<{ histogram: Histogram; missing: string[] }>;
  names(workspace: string, plural: string): Promise<string[]>;
}

interface Part {
  name: string;
  page: LogPage;
}

/** `others` null: this node is the only one. */
export function createAllLogs(own: Logs, selfName: () => string, others: OtherLogs | null): AllLogs {
  async function ask(query: LogQuery): Promise<{ parts: Part[]; missing: string[] }> {
    const missing: string[] = [];
    const asked = (others?.nodes() ?? []).map(async ({ id, name }): Promise<Part[]> => {
      try {
        return [{ name, page: await (others as OtherLogs).query(id, query) }];
      } catch {
        missing.push(name);
        return [];
      }
    });
    const parts = (await Promise.all([[{ name: selfName(), page: await own.query(query) }], ...asked])).flat();
    return { parts, missing };
  }

  return {
    async query(query) {
      const { parts, missing } = await ask(query);
      const filled = parts.filter(({ page }) => page.total > 0);
      const only = filled[0] ?? parts[0];
      if (only && filled.length < 2) return { ...only.page, servers: [only.name], missing };
      const { offset = 0, limit } = query;
      if (offset + limit > MERGED_MAX) throw tooFarBack();
      const again = await ask({ ...query, offset: 0, limit: offset + limit, bytesMax: MERGED_BYTES_MAX });
      return {
        ...merged(again.parts, query),
        servers: again.parts.filter(({ page }) => page.total > 0).map(({ name }) => name),
        missing: again.missing,
      };
    },
    async histogram(query) {
      const { parts, missing } = await ask({ ...query, offset: 0, limit: 0 });
      const histogram = emptyHistogram(query.buckets);
      for (const { name, page } of parts)
        if (page.histogram) addHistogram(histogram, page.histogram);
        else if (page.total > 0) missing.push(name);
      return { histogram, missing };
    },
    async names(workspace, plural) {
      const lists = (others?.nodes() ?? []).map(({ id }) =>
        (others as OtherLogs).names(id, workspace, plural).catch(() => []),
      );
      const all = (await Promise.all([own.names(workspace, plural), ...lists])).flat();
      return [...new Set(all)].sort();
    },
  };
}

const tooFarBack = (): PlatformError =>
  new PlatformError(
    "bad_request",
    `offset: the lines lie on several nodes, of which at most ${MERGED_MAX} lines and ${MERGED_BYTES_MAX / 2 ** 20} MB each are merged. Narrow the time range.`,
  );

/** Newest first, as each part is. Lines older than the end of a part that was cut would leave gaps, and are left out. */
function merged(parts: readonly Part[], { offset = 0, limit, bytesMax = Number.POSITIVE_INFINITY }: LogQuery): LogPage {
  const ends = parts.filter(({ page }) => page.cut).map(({ page }) => page.lines.at(-1)?.timeUs ?? 0);
  const all = parts
    .flatMap(({ page }) => page.lines)
    .filter(({ timeUs }) => ends.every((end) => timeUs >= end))
    .sort((a, b) => b.timeUs - a.timeUs);
  const wanted = all.slice(offset, offset + limit);
  if (ends.length > 0 && wanted.length === 0) throw tooFarBack();
  let bytes = 0;
  const lines = wanted.filter((line, at) => {
    const size = Buffer.byteLength(JSON.stringify(line));
    if (at > 0 && bytes + size > bytesMax) bytes = Number.POSITIVE_INFINITY;
    else bytes += size;
    return Number.isFinite(bytes);
  });
  const cut = lines.length < wanted.length || (ends.length > 0 && wanted.length < limit);
  return { lines, total: parts.reduce((sum, { page }) => sum + page.total, 0), bytes: cut ? bytesMax : bytes, cut };
}
