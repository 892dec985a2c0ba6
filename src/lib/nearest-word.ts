/** The known word that was probably meant, or null when none is similar enough. */
export function nearestWord(given: string, known: Iterable<string>): string | null {
  const word = given.toLowerCase();
  let best: string | null = null;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const extends_ = word.length >= 3 && candidate.toLowerCase().startsWith(word);
    const distance = extends_ ? 1 : editDistance(word, candidate.toLowerCase());
    if (distance < least && distance < Math.max(word.length, 2)) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** Number of insertions, deletions, replacements and swaps of neighbours between two words. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

const at = (row: readonly number[], index: number): number => row[index] ?? Number.POSITIVE_INFINITY;
