/** A part that scrolls over any number of rows of one height: which rows are in the document, and what stays in view. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Window, windowOf } from "./window.ts";

export interface ScrollOptions<Row> {
  rows: readonly Row[];
  keyOf(row: Row): string;
  rowPx: number;
  /** Where the rows begin; another place shows its first row at the top. */
  place?: string | undefined;
  /** The last rows came into view. */
  onEnd?: (() => void) | undefined;
  /** The first rows are in view. */
  onStart?: (() => void) | undefined;
  /** The last row is kept in view while rows come. */
  isFollowing?: boolean;
}

export interface ScrollWindow {
  frame: RefObject<HTMLDivElement | null>;
  shown: Window;
  onScroll(): void;
}

const HEIGHT_PX = 900;
/** A scroll over fewer rows stays within the rows around the view. */
const NEAR_ROWS = 8;
/** So near to an edge the rows beyond it are asked for. */
const EDGE_ROWS = 20;

/** The first row in view: it stays where it is when rows come or go above it. */
interface Anchor {
  place: string;
  key: string;
  at: number;
}

export function useScrollWindow<Row>(options: ScrollOptions<Row>): ScrollWindow {
  const { rows, keyOf, rowPx, place = "", onEnd, onStart, isFollowing = false } = options;
  const frame = useRef<HTMLDivElement>(null);
  const anchor = useRef<Anchor | null>(null);
  const [scrollPx, setScrollPx] = useState(0);
  const moved = (): void => {
    const { current } = frame;
    if (!current) return;
    const { scrollTop, clientHeight, scrollHeight } = current;
    // A new window only when the old one runs out, not at every pixel.
    if (Math.abs(scrollTop - scrollPx) > NEAR_ROWS * rowPx || scrollTop === 0) setScrollPx(scrollTop);
    const at = Math.min(rows.length - 1, Math.floor(scrollTop / rowPx));
    const row = rows[at];
    anchor.current = row === undefined ? null : { place, key: keyOf(row), at };
    if (scrollHeight - scrollTop - clientHeight < EDGE_ROWS * rowPx) onEnd?.();
    if (scrollTop < EDGE_ROWS * rowPx) onStart?.();
  };
  useLayoutEffect(() => {
    const { current } = frame;
    if (!current) return;
    const old = anchor.current;
    if (isFollowing) current.scrollTop = current.scrollHeight;
    else if (old !== null && old.place !== place) current.scrollTop = 0;
    else if (old !== null && (rows[old.at] === undefined || keyOf(rows[old.at] as Row) !== old.key)) {
      const now = rows.findIndex((row) => keyOf(row) === old.key);
      if (now >= 0) current.scrollTop += (now - old.at) * rowPx;
    }
    moved();
  }, [rows, place, isFollowing]);
  return {
    frame,
    shown: windowOf(rows.length, scrollPx, frame.current?.clientHeight ?? HEIGHT_PX, rowPx),
    onScroll: moved,
  };
}
