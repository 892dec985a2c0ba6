/**
 * How well a path fits a few typed letters: they must appear in order. Consecutive letters, letters at the beginning of
 * a word and letters of the file's own name count more. Null when they do not appear.
 */
const CONSECUTIVE = 8;
const WORD_START = 6;
const IN_BASE_NAME = 2;
const EXACT_BASE_NAME = 100;

export function fuzzyScore(query: string, path: string): number | null {
  const wanted = query.toLowerCase().replace(/\s+/g, "");
  const text = path.toLowerCase();
  const base = text.lastIndexOf("/") + 1;
  if (text.slice(base) === wanted) return EXACT_BASE_NAME + wanted.length * CONSECUTIVE;
  // People type the file name, so letters are matched there first; the whole path is tried only when that fails.
  return scoreFrom(wanted, path, text, base, base) ?? scoreFrom(wanted, path, text, base, 0);
}

function scoreFrom(wanted: string, path: string, text: string, base: number, start: number): number | null {
  let score = 0;
  let last = -2;
  let from = start;
  for (const char of wanted) {
    const at = text.indexOf(char, from);
    if (at === -1) return null;
    score += 1;
    if (at === last + 1) score += CONSECUTIVE;
    if (at === 0 || /[/._\- ]/.test(text[at - 1] ?? "") || isHump(path, at)) score += WORD_START;
    if (at >= base) score += IN_BASE_NAME;
    last = at;
    from = at + 1;
  }
  return score;
}

const isHump = (path: string, at: number): boolean =>
  /[A-Z]/.test(path[at] ?? "") && /[a-z0-9]/.test(path[at - 1] ?? "");
