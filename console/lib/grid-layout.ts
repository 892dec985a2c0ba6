/** How many cells of which size fit: small executions get large cells, and the largest still have one for each task. */
export interface GridLayout {
  cellPx: number;
  gapPx: number;
  columns: number;
  rows: number;
  widthPx: number;
  heightPx: number;
}

const CELL_MAX_PX = 18;
const CELL_MIN_PX = 2;
/** From this size on cells have a gap around them. */
const GAP_FROM_PX = 5;
/** The height that a grid aims at. */
const HEIGHT_PX = 400;

export function layoutOf(total: number, roomPx: number): GridLayout {
  const ideal = Math.floor(Math.sqrt((roomPx * HEIGHT_PX) / Math.max(1, total)));
  const cellPx = Math.max(CELL_MIN_PX, Math.min(CELL_MAX_PX, ideal));
  const columns = Math.max(1, Math.min(Math.floor(roomPx / cellPx), Math.max(1, total)));
  const rows = Math.ceil(total / columns);
  const gapPx = cellPx >= GAP_FROM_PX ? Math.max(1, Math.floor(cellPx / 6)) : 0;
  return { cellPx, gapPx, columns, rows, widthPx: columns * cellPx, heightPx: rows * cellPx };
}

/** The task at a place of the picture; null where there is none. */
export function taskAt({ cellPx, columns }: GridLayout, total: number, x: number, y: number): number | null {
  const [column, row] = [Math.floor(x / cellPx), Math.floor(y / cellPx)];
  const index = row * columns + column;
  return x < 0 || y < 0 || column >= columns || index >= total ? null : index;
}
