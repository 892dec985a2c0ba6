/** Figures with their limits. */
import { table } from "../measure.ts";

export interface Figure {
  what: string;
  /** Milliseconds, or a plain number where `unit` says so. */
  value: number;
  unit?: string;
  limit: number;
  /** The same for the static page. */
  reference?: number;
  /** The limit is so many times the reference. */
  limitIsRatio?: true;
}

export function reportFigures(figures: readonly Figure[]): void {
  const isOver = ({ value, limit, reference = 1, limitIsRatio }: Figure): boolean =>
    !(value <= (limitIsRatio ? limit * reference : limit));
  table(
    "The console in Chromium, in ms where nothing else is said",
    figures.map((figure) => ({
      figure: figure.what,
      measured: `${figure.value.toFixed(1)}${figure.unit === undefined ? "" : ` ${figure.unit}`}`,
      "static page": figure.reference === undefined ? "" : figure.reference.toFixed(1),
      limit: figure.limitIsRatio ? `${figure.limit} x the static page` : figure.limit,
      over: isOver(figure) ? "OVER" : "",
    })),
  );
  if (figures.some(isOver)) process.exitCode = 1;
}
