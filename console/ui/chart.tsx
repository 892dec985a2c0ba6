/** Stacked bars over time; the program that draws them is loaded with the first chart. */
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { useEffect, useRef } from "preact/hooks";

export interface Series {
  title: string;
  values: readonly number[];
}

export interface ChartProps {
  label: string;
  /** Seconds since the epoch. */
  times: readonly number[];
  series: readonly Series[];
  shown(value: number): string;
  /** Called with the number of the bar that a person chose. */
  onChoose?: (index: number) => void;
}

/** Colours that can be told apart in light and dark, also by people who see fewer of them. */
const COLOURS = ["#2a9d8f", "#e09f3e", "#577590", "#c8553d", "#8d6a9f", "#7f9c5d", "#b56576", "#4d908e"];
const HEIGHT_PX = 240;

export function Chart({ label, times, series, shown, onChoose }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chosen = useRef(onChoose);
  chosen.current = onChoose;
  const key = JSON.stringify([times, series]);
  useEffect(() => {
    let remove = (): void => {};
    let isGone = false;
    void import("uplot").then(({ default: Plot }) => {
      if (isGone || !place.current) return;
      const quiet = getComputedStyle(place.current).getPropertyValue("color");
      const axis = { stroke: quiet, grid: { stroke: "rgb(128 128 128 / 18%)" }, ticks: { show: false } };
      const stacked = stack(series);
      const plot = new Plot(
        {
          width: place.current.clientWidth,
          height: HEIGHT_PX,
          cursor: { drag: { x: false, y: false } },
          legend: { show: false },
          // Half a bar of room, so that the first and the last one are whole.
          scales: { x: { range: (_plot, min, max) => [min - halfOf(times), max + halfOf(times)] } },
          axes: [axis, { ...axis, size: 64, values: (_plot, ticks) => ticks.map((tick) => shown(tick)) }],
          series: [
            { label: "When" },
            ...series.map(({ title }, at) => ({
              label: title,
              fill: COLOURS[at % COLOURS.length] ?? quiet,
              width: 0,
              points: { show: false },
              ...(Plot.paths.bars ? { paths: Plot.paths.bars({ size: [0.7, 60] }) } : {}),
            })),
          ],
        },
        [[...times], ...stacked],
        place.current,
      );
      const sizes = new ResizeObserver(
        ([entry]) => entry && plot.setSize({ width: entry.contentRect.width, height: HEIGHT_PX }),
      );
      sizes.observe(place.current);
      plot.over.addEventListener("click", () => {
        const { idx } = plot.cursor;
        if (idx !== null && idx !== undefined) chosen.current?.(idx);
      });
      remove = () => {
        sizes.disconnect();
        plot.destroy();
      };
    });
    return () => {
      isGone = true;
      remove();
    };
  }, [key]);
  return (
    <>
      <div class="chart quiet" ref={place} role="img" aria-label={label} />
      <ul class="legend" aria-label="Legend">
        {series.map(({ title, values }, at) => (
          <li key={title}>
            <span class="swatch" style={{ background: COLOURS[at % COLOURS.length] }} />
            {title}
            <span class="quiet">{shown(values.reduce((sum, value) => sum + value, 0))}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const halfOf = (times: readonly number[]): number => ((times[1] ?? 0) - (times[0] ?? 0)) / 2;

/** Each series on top of those after it, so that the first is drawn first and the largest stays behind. */
function stack(series: readonly Series[]): number[][] {
  const sums: number[][] = [];
  let below: readonly number[] = [];
  for (const { values } of [...series].reverse()) {
    below = values.map((value, at) => value + (below[at] ?? 0));
    sums.unshift([...below]);
  }
  return sums;
}
