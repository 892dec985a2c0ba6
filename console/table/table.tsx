/** A table of any length: only rows near the view are in the document. */
import "./table.css";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useScrollWindow } from "./scroll-window.ts";
import { ROW_PX } from "./window.ts";

export interface TableColumn<Row> {
  title: string;
  /** Class of its cells. */
  look?: string;
  cell(row: Row): ComponentChildren;
}

export interface TableProps<Row> {
  label: string;
  columns: readonly TableColumn<Row>[];
  rows: readonly Row[];
  keyOf(row: Row): string;
  /** Called when the last rows come into view. */
  onEnd?: () => void;
  /** Called when the first rows come into view, and after a jump to another place. */
  onStart?: () => void;
  /** Where the rows begin; another place shows its first row at the top. */
  place?: string;
  /** Columns keep their widths whatever the rows hold: nothing moves while a long list is scrolled. */
  isSteady?: boolean;
  /** Few rows of long texts: on narrow screens the cells of a row stand below each other, whole. */
  isStacked?: boolean;
  picked?: ReadonlySet<string>;
  onPick?: (picked: ReadonlySet<string>) => void;
}

export function Table<Row>(props: TableProps<Row>) {
  const {
    label,
    columns,
    rows,
    keyOf,
    onEnd,
    onStart,
    place,
    isSteady = false,
    isStacked = false,
    picked,
    onPick,
  } = props;
  const { frame, shown, onScroll } = useScrollWindow({ rows, keyOf, rowPx: ROW_PX, place, onEnd, onStart });
  const inDocument = rows.slice(shown.first, shown.end);
  const elementKey = useElementKeys(place, inDocument.map(keyOf));
  const width = columns.length + (onPick ? 1 : 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
    <section class="table-frame" aria-label={label} tabIndex={0} ref={frame} onScroll={onScroll} onKeyDown={moveFocus}>
      <table class={`table${isSteady ? " steady" : ""}${isStacked ? " stacked" : ""}`} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {onPick && picked ? (
              <th class="pick">
                <input
                  type="checkbox"
                  aria-label="Pick all"
                  checked={picked.size > 0 && picked.size === rows.length}
                  onChange={(event) => onPick(new Set(event.currentTarget.checked ? rows.map(keyOf) : []))}
                />
              </th>
            ) : null}
            {columns.map(({ title, look = "" }) => (
              <th key={title} class={look} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap px={shown.abovePx} width={width} />
          {inDocument.map((row, at) => {
            const key = keyOf(row);
            return (
              <tr key={elementKey(key)} aria-rowindex={shown.first + at + 2}>
                {onPick && picked ? (
                  <td class="pick">
                    <input
                      type="checkbox"
                      aria-label={`Pick ${key}`}
                      checked={picked.has(key)}
                      onChange={() => onPick(toggled(picked, key))}
                    />
                  </td>
                ) : null}
                {columns.map(({ title, look = "", cell }) => (
                  <td key={title} class={look}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Gap px={shown.belowPx} width={width} />
        </tbody>
      </table>
    </section>
  );
}

/** Rows of another place take the elements of the rows before them: a jump changes texts and makes no new elements. */
function useElementKeys(place: string | undefined, keys: readonly string[]): (key: string) => string {
  const taken = useRef({ place, slots: new Map<string, string>() });
  if (taken.current.place !== place)
    taken.current = { place, slots: new Map(keys.map((key, slot) => [key, `slot ${slot}`])) };
  return (key) => taken.current.slots.get(key) ?? key;
}

const Gap = ({ px, width }: { px: number; width: number }) =>
  px <= 0 ? null : (
    <tr>
      <td class="gap" colSpan={width} style={{ height: `${px}px` }} />
    </tr>
  );

const toggled = (picked: ReadonlySet<string>, key: string): ReadonlySet<string> =>
  picked.has(key) ? new Set([...picked].filter((one) => one !== key)) : new Set([...picked, key]);

/** Arrows move between the links of the rows. */
function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || event.target instanceof HTMLInputElement) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("td.name a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[at < 0 ? 0 : at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
