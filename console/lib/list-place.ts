/**
 * Places between the first and the last row of an ordered list, as shares from 0 to 1. Lists are ordered by time or by
 * name; a place between two names is the text that lies at the share between them, whether a row has it or not.
 */
export type Ends = readonly [first: string, last: string];

/** The characters of names, in the order of the server. */
const LETTERS = "-.0123456789_abcdefghijklmnopqrstuvwxyz";
/** Characters that count: 39 ** 6 places are far more than a list has rows. */
const DEPTH = 6;

export const timeAt = ([first, last]: Ends, share: number): string => {
  const [from, until] = [Date.parse(first), Date.parse(last)];
  return new Date(Math.round(from + (until - from) * share)).toISOString();
};

export function nameAt([first, last]: Ends, share: number): string {
  const common = commonPrefix(first, last);
  const [from, until] = [numberOf(first.slice(common.length)), numberOf(last.slice(common.length))];
  return common + textOf(from + (until - from) * share);
}

export function shareOfTime([first, last]: Ends, place: string): number {
  const [from, until, here] = [first, last, place].map((time) => Date.parse(time)) as [number, number, number];
  return clamped(from === until ? 0 : (here - from) / (until - from));
}

export function shareOfName([first, last]: Ends, place: string): number {
  const { length } = commonPrefix(first, last);
  const [from, until, here] = [first, last, place].map((name) => numberOf(name.slice(length))) as [
    ...[number, number, number],
  ];
  return clamped(from === until ? 0 : (here - from) / (until - from));
}

const clamped = (share: number): number => (Number.isNaN(share) ? 0 : Math.min(1, Math.max(0, share)));

function commonPrefix(a: string, b: string): string {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length += 1;
  return a.slice(0, length);
}

/** The text as a fraction in the base of the letters. */
function numberOf(text: string): number {
  let number = 0;
  for (let at = 0; at < DEPTH; at += 1)
    number = number * LETTERS.length + Math.max(0, LETTERS.indexOf((text[at] ?? "-").toLowerCase()));
  return number;
}

function textOf(number: number): string {
  let [rest, text] = [Math.round(number), ""];
  for (let at = 0; at < DEPTH; at += 1) {
    text = (LETTERS[rest % LETTERS.length] ?? "") + text;
    rest = Math.floor(rest / LETTERS.length);
  }
  return text.replace(/-+$/, "");
}
