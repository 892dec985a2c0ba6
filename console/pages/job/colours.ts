import { LETTERS, STATES, type TaskState } from "../../lib/task-grid.ts";

/** The colours of the style sheet as numbers of 32 bits, in the order of bytes that image data has. */
export function coloursOf(place: HTMLElement): Record<TaskState, number> {
  const probe = document.createElement("span");
  place.append(probe);
  const colours = Object.fromEntries(
    STATES.map((state) => {
      probe.className = `swatch ${state}`;
      return [state, numberOf(getComputedStyle(probe).color)];
    }),
  );
  probe.remove();
  return colours as Record<TaskState, number>;
}

const OPAQUE = 255;

function numberOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return packed(red, green, blue, OPAQUE);
}

const packed = (red: number, green: number, blue: number, alpha: number): number =>
  ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** How much of a colour is left of a task that a filter leaves out. */
const FAINT = 36;

const faint = (colour: number): number => ((colour & 0x00ffffff) | (FAINT << 24)) >>> 0;

/** The colour of each letter, by its code: a look at a map is the whole cost of a task. */
export const paletteOf = (
  colours: Readonly<Record<TaskState, number>>,
  only: TaskState | null,
): ReadonlyMap<number, number> =>
  new Map(
    Object.entries(LETTERS).map(([letter, state]) => [
      letter.charCodeAt(0),
      only === null || only === state ? colours[state] : faint(colours[state]),
    ]),
  );
