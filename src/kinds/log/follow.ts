/** Lines of workloads as they come: looks for new ones every second, and tells each line once. */
import type { EventOutput, EventStream } from "../../contract/event-stream.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { StoredLine } from "../../node/logs/log-line.ts";

const LOOK_MS = SECOND_MS;
/**
 * Looks of all followers of this process. Each look scans files: one look of a caller at a time, callers in turn, so
 * that more followers of one caller get their lines later and cost the server no more.
 */
const looks = new FairQueue({ atOnce: 4, atOncePerOwner: 1, waitingMax: 64 });
/** Lines of other nodes may arrive late, so each look reaches back this far; lines already told are skipped. */
const OVERLAP_MS = 10 * SECOND_MS;

export interface Found {
  workload: string;
  /** Newest first. */
  lines: StoredLine[];
  /** Number of all lines in the range, also those that are left out of `lines`. */
  total: number;
}

export interface FollowOptions {
  /** Who reads: the looks of one reader take turns. */
  reader: string;
  /** The last line that the client knows; null = it wants only lines that come from now on. */
  after: { fromMs: number; us: number } | null;
  /** Lines of the range; throws when they may no longer be read. */
  look(fromMs: number, toMs: number): Promise<Found[]>;
  now(): number;
  toWire(line: StoredLine): { timestamp: string };
}

export const followStream = (options: FollowOptions): EventStream => ({
  start(out) {
    const follower = new Follower(options, out);
    follower.run();
    return { onDrain() {}, stop: () => follower.stop() };
  },
});

class Follower {
  readonly #options: FollowOptions;
  readonly #out: EventOutput;
  /** Times of the lines that were told, by workload: no two lines of a workload have the same. */
  #told = new Map<string, Set<number>>();
  #fromMs: number;
  #isFirst = true;
  #timer: NodeJS.Timeout | null = null;
  #isOver = false;

  constructor(options: FollowOptions, out: EventOutput) {
    this.#options = options;
    this.#out = out;
    this.#fromMs = options.after?.fromMs ?? options.now() - OVERLAP_MS;
  }

  run(): void {
    // A reader whose looks wait already gets the lines with the next look.
    const look = looks.run(this.#options.reader, async () => (this.#isOver ? undefined : this.#look()));
    (look ?? Promise.resolve()).then(
      () => {
        if (!this.#isOver) this.#timer = setTimeout(() => this.run(), LOOK_MS);
      },
      (error: Error) => this.#out.end(error.message),
    );
  }

  stop(): void {
    this.#isOver = true;
    if (this.#timer) clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    // A client that does not read gets the lines later, or hears that some are left out.
    if (!this.#out.hasRoom()) return;
    const { look, now, toWire, after } = this.#options;
    const toMs = now();
    const found = await look(this.#fromMs, toMs);
    const told = new Map<string, Set<number>>();
    if (this.#isFirst) this.#out.send({ event: "ready", data: {} });
    const isSilent = this.#isFirst && after === null;
    this.#isFirst = false;
    for (const { workload, lines, total } of found) {
      told.set(workload, new Set(lines.map(({ timeUs }) => timeUs)));
      if (isSilent) continue;
      const before = this.#told.get(workload);
      const isNew = ({ timeUs }: StoredLine): boolean => timeUs > (after?.us ?? 0) && !before?.has(timeUs);
      const news = lines.filter(isNew).reverse();
      // More lines came than one look reads, and none of those it read was told before.
      if (total > lines.length && news.length === lines.length)
        this.#out.send({ event: "gap", data: { workload, count: total - lines.length } });
      const last = news.at(-1);
      if (last)
        this.#out.send({ event: "lines", data: { workload, logs: news.map(toWire) }, id: toWire(last).timestamp });
    }
    this.#told = told;
    this.#fromMs = Math.max(this.#fromMs, toMs - OVERLAP_MS);
  }
}
