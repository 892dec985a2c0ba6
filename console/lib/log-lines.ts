/** Lines of several workloads as one list, oldest first. */
export interface LogLine {
  timestamp: string;
  message: string;
  severity: number;
  trace_id: string;
  workload: string;
  task_id?: string;
}

export type LogAnswer = Readonly<Record<string, { logs?: readonly Omit<LogLine, "workload">[]; totalCount?: number }>>;

export interface LinePage {
  lines: LogLine[];
  /** Lines before this timestamp are on the next page; null = this is the last one. */
  before: string | null;
}

/**
 * The server pages each workload by itself. Where one of them has more lines, those of the others before its oldest line
 * wait for the next page: else there would be gaps.
 */
export function mergePage(answer: LogAnswer): LinePage {
  const cuts = Object.values(answer).flatMap(({ logs = [], totalCount = 0 }) => {
    const oldest = logs.at(-1);
    return oldest && totalCount > logs.length ? [oldest.timestamp] : [];
  });
  const before = cuts.sort().at(-1) ?? null;
  const lines = Object.entries(answer)
    .flatMap(([workload, { logs = [] }]) => logs.map((line) => ({ ...line, workload })))
    .filter(({ timestamp }) => before === null || timestamp >= before)
    .sort(byTime);
  return { lines, before };
}

const byTime = (a: LogLine, b: LogLine): number => (a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : 0);

export const keyOfLine = ({ workload, timestamp }: LogLine): string => `${workload} ${timestamp}`;

/** New lines at their places, without those that are known; the oldest go when there are too many. */
export function withNewLines(old: readonly LogLine[], news: readonly LogLine[], max: number): readonly LogLine[] {
  const first = news[0]?.timestamp ?? "";
  const known = new Set(old.filter(({ timestamp }) => timestamp >= first).map(keyOfLine));
  const fresh = news.filter((line) => !known.has(keyOfLine(line)));
  if (fresh.length === 0) return old;
  const isInOrder = (old.at(-1)?.timestamp ?? "") <= (fresh[0]?.timestamp ?? "");
  const all = isInOrder ? [...old, ...fresh] : [...old, ...fresh].sort(byTime);
  return all.length > max ? all.slice(all.length - max) : all;
}

/** A test for lines; an expression that is not valid says so. */
export function wantedBy(expression: string): { isWanted(line: LogLine): boolean; wrong: string | null } {
  if (expression === "") return { isWanted: () => true, wrong: null };
  try {
    const pattern = new RegExp(expression, "i");
    return { isWanted: ({ message }) => pattern.test(message), wrong: null };
  } catch (error) {
    return { isWanted: () => true, wrong: error instanceof Error ? error.message : String(error) };
  }
}
