/** Which rows of a long list are in the document: those in view and some around them. */

export const ROW_PX = 36;
/** Rows beyond each edge, so that scrolling shows no gaps. */
export const AROUND = 20;

export interface Window {
  first: number;
  end: number;
  /** Heights of what is left out above and below. */
  abovePx: number;
  belowPx: number;
}

export function windowOf(count: number, scrollPx: number, heightPx: number, rowPx = ROW_PX, around = AROUND): Window {
  const seen = Math.ceil(heightPx / rowPx);
  const top = Math.max(0, Math.min(Math.floor(scrollPx / rowPx), count - seen));
  const [first, end] = [Math.max(0, top - around), Math.min(count, top + seen + around)];
  return { first, end, abovePx: first * rowPx, belowPx: (count - end) * rowPx };
}
