/** A search by words: files that contain more of the words, and more often, come first. */
import { closeSync } from "node:fs";
import type { BytePath } from "../files/byte-path.ts";
import { openRegular } from "../files/file-io.ts";
import { linesOf } from "./content-search.ts";
import { EXCLUDED_FOLDERS, walk } from "./file-walk.ts";

const RESULTS_MAX = 10;
const WORDS_MAX = 12;
const WORD_CHARS_MIN = 3;
const FILE_BYTES_MAX = 1024 * 1024;
const TEXT_CHARS_MAX = 300;

export interface KeywordResult {
  path: string;
  line: number;
  text: string;
  score: number;
}

export async function keywordSearch(roots: BytePath[], query: string, signal: AbortSignal): Promise<KeywordResult[]> {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [])]
    .filter((word) => word.length >= WORD_CHARS_MIN)
    .slice(0, WORDS_MAX);
  if (words.length === 0) return [];
  const results: KeywordResult[] = [];
  for (const root of roots) {
    for await (const entry of walk(root, { excludeFolders: new Set(EXCLUDED_FOLDERS), excludeHidden: true, signal })) {
      const result = entry.type === "file" ? await scoreFile(entry.path, entry.relative, words) : null;
      if (result) results.push(result);
    }
  }
  return results.sort((a, b) => b.score - a.score).slice(0, RESULTS_MAX);
}

async function scoreFile(path: BytePath, relative: string, words: string[]): Promise<KeywordResult | null> {
  let file: ReturnType<typeof openRegular>;
  try {
    file = openRegular(path);
  } catch {
    return null; // removed, or unreadable
  }
  try {
    if (file.stats.size > FILE_BYTES_MAX) return null;
    const counts = new Map<string, number>();
    let best = { line: 0, text: "", hits: 0 };
    for await (const { firstLine, lines } of linesOf(file)) {
      for (const [i, text] of lines.entries()) {
        const low = text.toLowerCase();
        const hits = words.filter((word) => low.includes(word));
        for (const word of hits) counts.set(word, (counts.get(word) ?? 0) + 1);
        if (hits.length > best.hits)
          best = { line: firstLine + i, text: text.slice(0, TEXT_CHARS_MAX), hits: hits.length };
      }
    }
    if (best.hits === 0) return null;
    // Repetitions of a word add little to the score, each further word adds much.
    const score = [...counts.values()].reduce((sum, count) => sum + 1 + Math.log10(count), 0);
    return { path: relative, line: best.line, text: best.text, score: Math.round(score * 100) / 100 };
  } finally {
    closeSync(file.fd);
  }
}
