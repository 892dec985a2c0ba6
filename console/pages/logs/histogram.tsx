/** Lines over time, by how bad they are. A bar leads to its part of the range. */
import type { Histogram } from "../../api/logs.ts";
import { clockOf, countOf } from "../../lib/format.ts";

export function HistogramBars({
  histogram,
  onChoose,
}: {
  histogram: Histogram;
  onChoose(start: string, end: string): void;
}) {
  const { start, stepMs, info, warning, error } = histogram;
  const sums = info.map((count, at) => count + (warning[at] ?? 0) + (error[at] ?? 0));
  const most = Math.max(1, ...sums);
  const fromMs = Date.parse(start);
  const timeAt = (at: number): string => new Date(fromMs + at * stepMs).toISOString();
  const part = (count: number): string => `${(100 * count) / most}%`;
  return (
    <div class="histogram">
      <fieldset class="bars">
        <legend class="hidden-visually">Lines over time</legend>
        {sums.map((sum, at) =>
          sum === 0 ? (
            <span key={at} />
          ) : (
            <button
              key={at}
              type="button"
              aria-label={`${countOf(sum, "line")} from ${clockOf(timeAt(at))}`}
              title={`${countOf(sum, "line")}, ${countOf(error[at] ?? 0, "error")}, from ${clockOf(timeAt(at))}`}
              onClick={() => onChoose(timeAt(at), timeAt(at + 1))}
            >
              <i class="info" style={{ height: part(info[at] ?? 0) }} />
              <i class="warning" style={{ height: part(warning[at] ?? 0) }} />
              <i class="error" style={{ height: part(error[at] ?? 0) }} />
            </button>
          ),
        )}
      </fieldset>
      <div class="axis">
        <span>{clockOf(start)}</span>
        <span>{countOf(histogram.total, "line")}</span>
        <span>{clockOf(histogram.end)}</span>
      </div>
    </div>
  );
}
