/** The geometry of a small chart: values become a line and the area below it, in a box of 100 by 100. */

export interface ChartShape {
  line: string;
  area: string;
  /** The value at the upper edge. */
  top: number;
}

const SIZE = 100;

/** `top` is a round number of units. A value that is null interrupts the line. A single value between two gaps is drawn as a short line. */
export function shapeOf(values: readonly (number | null)[], unit = 1): ChartShape {
  const top = unit * roundUp(Math.max(0, ...values.map((value) => value ?? 0)) / unit);
  const step = SIZE / Math.max(1, values.length - 1);
  const [lines, areas]: [string[], string[]] = [[], []];
  for (const { from, run } of runsOf(values)) {
    const x = (at: number): number => round((from + at) * step);
    const last = run.length === 1 ? Math.min(SIZE, x(0) + step / 2) : x(run.length - 1);
    const points = run.map((value, at) => `${x(at)} ${round(SIZE - (SIZE * value) / top)}`);
    const path = [...points, ...(run.length === 1 ? [`${round(last)} ${points[0]?.split(" ")[1]}`] : [])].join("L");
    lines.push(`M${path}`);
    areas.push(`M${x(0)} ${SIZE}L${path}L${round(last)} ${SIZE}Z`);
  }
  return { line: lines.join(""), area: areas.join(""), top };
}

/** The unbroken parts of a row of values. */
function runsOf(values: readonly (number | null)[]): { from: number; run: number[] }[] {
  const runs: { from: number; run: number[] }[] = [];
  let isOpen = false;
  for (const [at, value] of values.entries()) {
    if (value !== null) {
      if (isOpen) runs.at(-1)?.run.push(value);
      else runs.push({ from: at, run: [value] });
    }
    isOpen = value !== null;
  }
  return runs;
}

/** The next 1, 2 or 5 times a power of ten; 1 for nothing at all. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((times) => times * power).find((edge) => edge >= value) ?? value;
}

const round = (value: number): number => Math.round(value * 100) / 100;
