/**
 * A part that scrolls over any number of rows of one height: which rows are in the document, and what stays in view.
 * Positions are counted in rows and never read back from the document while it is being drawn: each such reading would
 * lay the page out once more.
 */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { AROUND, type Window, windowOf } from "./window.ts";

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

/** Until the height of the part is known. */
const HEIGHT_PX = 900;
/** A scroll over fewer rows stays within the rows around the view. */
const NEAR_ROWS = 8;
/** So near to an edge the rows beyond it are asked for. */
const EDGE_ROWS = 20;
/** Rows before a place are asked for when the place has been shown for so long: a slider passes many places. */
const START_AFTER_MS = 150;
/** Rows beyond each edge of a place that was just opened, and when the others follow: after the first frame. */
const FIRST_AROUND = 2;
const AROUND_AFTER_MS = 40;
/** Further down than any rows reach. */
const END_PX = 1e9;

interface View {
  topPx: number;
  heightPx: number;
  /** The position for which rows were last drawn. */
  drawnPx: number;
  /** The place of the rows that were painted last; null before the first. */
  painted: string | null;
  place: string;
  /** The first row in view: it stays where it is when rows come or go above it. */
  anchor: { key: string; at: number } | null;
}

export function useScrollWindow<Row>(options: ScrollOptions<Row>): ScrollWindow {
  const { rows, rowPx, place = "", isFollowing = false } = options;
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<View>({ topPx: 0, heightPx: HEIGHT_PX, drawnPx: 0, painted: null, place, anchor: null });
  const latest = useRef(options);
  latest.current = options;
  const [, draw] = useState(0);
  const topPx = isFollowing
    ? Math.max(0, rows.length * rowPx - view.current.heightPx)
    : topOf(view.current, place, options);
  view.current.drawnPx = topPx;
  // The rows in view are painted first, and those around them in the next frame.
  const around = view.current.painted === place ? AROUND : FIRST_AROUND;

  useLayoutEffect(() => {
    const { current } = frame;
    if (!current) return;
    const size = new ResizeObserver(() => {
      const { clientHeight } = current;
      const hasGrown = clientHeight > view.current.heightPx + rowPx;
      view.current.heightPx = clientHeight;
      if (hasGrown) draw((count) => count + 1);
    });
    size.observe(current);
    return () => size.disconnect();
  }, []);

  useLayoutEffect(() => {
    const { current } = frame;
    if (!current) return;
    if (isFollowing) current.scrollTop = END_PX;
    else if (topPx !== view.current.topPx) current.scrollTop = topPx;
    view.current = { ...view.current, topPx, place, anchor: anchorAt(topPx, options) };
    if (isNearEnd(view.current, options)) options.onEnd?.();
    const later = setTimeout(() => {
      if (view.current.topPx < EDGE_ROWS * rowPx) latest.current.onStart?.();
    }, START_AFTER_MS);
    return () => clearTimeout(later);
  }, [rows, place, isFollowing]);

  useLayoutEffect(() => {
    if (view.current.painted === place) return;
    const later = setTimeout(() => {
      view.current.painted = place;
      draw((count) => count + 1);
    }, AROUND_AFTER_MS);
    return () => clearTimeout(later);
  }, [place]);

  const onScroll = (): void => {
    const { current } = frame;
    if (!current) return;
    const { scrollTop } = current;
    view.current = { ...view.current, topPx: scrollTop, anchor: anchorAt(scrollTop, options) };
    // New rows only when the drawn ones run out, not at every pixel.
    if (Math.abs(scrollTop - view.current.drawnPx) > NEAR_ROWS * rowPx) draw((count) => count + 1);
    if (isNearEnd(view.current, options)) options.onEnd?.();
    if (scrollTop < EDGE_ROWS * rowPx) options.onStart?.();
  };
  return { frame, shown: windowOf(rows.length, topPx, view.current.heightPx, rowPx, around), onScroll };
}

/** Where the view is to be with these rows. */
function topOf<Row>(
  { topPx, anchor, ...view }: View,
  place: string,
  { rows, keyOf, rowPx }: ScrollOptions<Row>,
): number {
  if (view.place !== place) return 0;
  if (anchor === null) return topPx;
  const there = rows[anchor.at];
  if (there !== undefined && keyOf(there) === anchor.key) return topPx;
  const now = rows.findIndex((row) => keyOf(row) === anchor.key);
  return now < 0 ? topPx : topPx + (now - anchor.at) * rowPx;
}

function anchorAt<Row>(topPx: number, { rows, keyOf, rowPx }: ScrollOptions<Row>): View["anchor"] {
  const at = Math.min(rows.length - 1, Math.floor(topPx / rowPx));
  const row = rows[at];
  return row === undefined ? null : { key: keyOf(row), at };
}

const isNearEnd = <Row>({ topPx, heightPx }: View, { rows, rowPx }: ScrollOptions<Row>): boolean =>
  rows.length * rowPx - topPx - heightPx < EDGE_ROWS * rowPx;
