/** Two texts line by line: lines that only one of them has, in their order, and those that both have. */
export interface DiffLine {
  sign: " " | "-" | "+";
  text: string;
}

/** Longer texts are compared without the lines that they share being found: the table below would be too large. */
const LINES_MAX = 2000;

export function linesOfDifference(before: string, after: string): DiffLine[] {
  const [old, next] = [before.split("\n"), after.split("\n")];
  const line =
    (sign: DiffLine["sign"]) =>
    (text: string): DiffLine => ({ sign, text });
  if (old.length > LINES_MAX || next.length > LINES_MAX) return [...old.map(line("-")), ...next.map(line("+"))];
  const common = lengthsOf(old, next);
  const found: DiffLine[] = [];
  let [a, b] = [0, 0];
  while (a < old.length || b < next.length) {
    if (a < old.length && b < next.length && old[a] === next[b]) {
      found.push({ sign: " ", text: old[a] ?? "" });
      a += 1;
      b += 1;
    } else if (b >= next.length || (a < old.length && at(common, a + 1, b) >= at(common, a, b + 1))) {
      found.push({ sign: "-", text: old[a] ?? "" });
      a += 1;
    } else {
      found.push({ sign: "+", text: next[b] ?? "" });
      b += 1;
    }
  }
  return found;
}

const at = (table: readonly Uint16Array[], a: number, b: number): number => table[a]?.[b] ?? 0;

/** How many lines the rests of both texts have in common, from each pair of lines on. */
function lengthsOf(old: readonly string[], next: readonly string[]): Uint16Array[] {
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(next.length + 1));
  for (let a = old.length - 1; a >= 0; a -= 1)
    for (let b = next.length - 1; b >= 0; b -= 1) {
      const row = table[a];
      if (row)
        row[b] = old[a] === next[b] ? at(table, a + 1, b + 1) + 1 : Math.max(at(table, a + 1, b), at(table, a, b + 1));
    }
  return table;
}
