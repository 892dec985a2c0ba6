/** The two pictures of an execution: a cell for each task, and a bar for each task over time. */
import { layoutOf, taskAt } from "../../lib/grid-layout.ts";
import type { TaskGrid } from "../../lib/task-grid.ts";
import { paletteOf } from "./colours.ts";
import type { Picture } from "./task-picture.tsx";

export function cells(grid: TaskGrid, roomPx: number): Picture {
  const layout = layoutOf(grid.total, roomPx);
  const { cellPx, gapPx, columns, widthPx, heightPx } = layout;
  const inner = cellPx - gapPx;
  const cornerOf = (task: number) => ({ x: (task % columns) * cellPx, y: Math.floor(task / columns) * cellPx });
  return {
    widthPx,
    heightPx,
    stride: columns,
    taskAt: (x, y) => taskAt(layout, grid.total, x, y),
    boxOf: (task) => ({ ...cornerOf(task), width: inner, height: inner }),
    paint(pixels, colours, only) {
      const colourOf = paletteOf(colours, only);
      for (let task = 0; task < grid.total; task += 1) {
        const colour = colourOf.get(grid.tasks.charCodeAt(task)) ?? 0;
        const { x, y } = cornerOf(task);
        for (let row = y; row < y + inner; row += 1) pixels.fill(colour, row * widthPx + x, row * widthPx + x + inner);
      }
    },
  };
}

const BAR_MAX_PX = 14;
const HEIGHT_MAX_PX = 480;
const BAR_MIN_WIDTH_PX = 2;

/** The longest time that a picture has to show. */
export const spanOf = ({ starts, ends }: TaskGrid): number => {
  let span = 1;
  for (const [task, start] of starts.entries()) span = Math.max(span, start, ends[task] ?? 0);
  return span;
};

export function bars(nowMs: number) {
  return (grid: TaskGrid, roomPx: number): Picture => {
    const barPx = Math.max(1, Math.min(BAR_MAX_PX, Math.floor(HEIGHT_MAX_PX / Math.max(1, grid.total))));
    // More tasks than rows: several share one.
    const heightPx = Math.max(1, Math.min(grid.total * barPx, HEIGHT_MAX_PX));
    const span = Math.max(spanOf(grid), nowMs);
    const gapPx = barPx > 4 ? 2 : barPx > 2 ? 1 : 0;
    const topOf = (task: number): number => Math.floor((task * heightPx) / Math.max(1, grid.total));
    const boxOf = (task: number) => {
      const start = grid.starts[task] ?? -1;
      const end = grid.ends[task] ?? -1;
      const x = start < 0 ? 0 : Math.floor((start / span) * (roomPx - BAR_MIN_WIDTH_PX));
      const until = start < 0 ? 0 : Math.ceil(((end < 0 ? span : end) / span) * roomPx);
      const width = start < 0 ? 0 : Math.max(BAR_MIN_WIDTH_PX, Math.min(roomPx, until) - x);
      return { x, y: topOf(task), width, height: Math.max(1, barPx - gapPx) };
    };
    return {
      widthPx: roomPx,
      heightPx,
      stride: 1,
      boxOf,
      taskAt: (_x, y) => {
        const task = Math.floor((y * grid.total) / heightPx);
        return task >= 0 && task < grid.total ? task : null;
      },
      paint(pixels, colours, only) {
        const colourOf = paletteOf(colours, only);
        for (let task = 0; task < grid.total; task += 1) {
          const { x, y, width, height } = boxOf(task);
          const colour = colourOf.get(grid.tasks.charCodeAt(task)) ?? 0;
          for (let row = y; row < Math.min(heightPx, y + height); row += 1)
            pixels.fill(colour, row * roomPx + x, row * roomPx + x + width);
        }
      },
    };
  };
}
