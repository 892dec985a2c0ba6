import "./line-chart.css";
import { useState } from "preact/hooks";
import { shapeOf } from "../lib/chart-path.ts";

export interface LineChartProps {
  title: string;
  times: readonly string[];
  values: readonly (number | null)[];
  shown(value: number): string;
  /** What the number beside the title is: the last value, or the sum of all. */
  headline: "last" | "sum";
  /** The size of a round number, such as a megabyte. */
  unit?: number | undefined;
}

/** A small chart of one value over time. The pointer, or the arrows, read a value out. */
export function LineChart({ title, times, values, shown, headline, unit }: LineChartProps) {
  const [at, setAt] = useState<number | null>(null);
  const { line, area, top } = shapeOf(values, unit);
  const known = values.filter((value) => value !== null);
  const whole = headline === "sum" ? known.reduce((sum, value) => sum + value, 0) : (known.at(-1) ?? null);
  const value = at === null ? whole : (values[at] ?? null);
  const text = value === null ? "–" : shown(value);
  const last = values.length - 1;
  return (
    <figure class="line-chart">
      <figcaption>
        <span class="quiet">{title}</span>
        <strong>{text}</strong>
        <span class="quiet edge">{at === null ? shown(top) : clock(times[at])}</span>
      </figcaption>
      <div
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={`${title} over time`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={at ?? last}
        aria-valuetext={at === null ? text : `${clock(times[at])}: ${text}`}
        onPointerMove={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect();
          setAt(Math.round((last * Math.min(width, Math.max(0, clientX - left))) / width));
        }}
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
        onKeyDown={(event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (step === undefined) return;
          event.preventDefault();
          setAt(Math.min(last, Math.max(0, (at ?? last) + step)));
        }}
      >
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          <path class="area" d={area} />
          <path class="line" d={line} />
          {at === null ? null : <path class="cursor" d={`M${(100 * at) / Math.max(1, last)} 0V100`} />}
        </svg>
      </div>
      <div class="axis quiet">
        <span>{clock(times[0])}</span>
        <span>{clock(times.at(-1))}</span>
      </div>
    </figure>
  );
}

const clock = (time: string | undefined): string =>
  time === undefined ? "" : new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
