/** Finds a literal text in a file, with line and column. Skips binary files. */
import { type OpenFile, readAt } from "../files/file-io.ts";

export interface ContentMatch {
  line: number;
  column: number;
  text: string;
}

const CHUNK_BYTES = 256 * 1024;
const BINARY_PROBE_BYTES = 8 * 1024;
/** Most characters shown of a matching line. */
const TEXT_CHARS_MAX = 1000;
/** A longer line is searched in pieces of this size. */
const LINE_CHARS_MAX = 1024 * 1024;

export interface ContentQuery {
  query: string;
  caseSensitive: boolean;
}

export async function searchFile(
  file: OpenFile,
  { query, caseSensitive }: ContentQuery,
  max: number,
): Promise<ContentMatch[]> {
  const fold = (text: string): string => (caseSensitive ? text : text.toLowerCase());
  const needle = fold(query);
  const found: ContentMatch[] = [];
  for await (const { firstLine, lines } of linesOf(file)) {
    // Test the whole chunk first: most chunks of most files have no match.
    if (!fold(lines.join("\n")).includes(needle)) continue;
    for (const [i, line] of lines.entries()) {
      const at = fold(line).indexOf(needle);
      if (at === -1) continue;
      found.push({ line: firstLine + i, column: at + 1, text: line.slice(0, TEXT_CHARS_MAX) });
      if (found.length >= max) return found;
    }
  }
  return found;
}

/** Yields whole lines, many at a time; nothing for a binary file. */
export async function* linesOf(file: OpenFile): AsyncGenerator<{ firstLine: number; lines: string[] }> {
  const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(file.stats.size, 4096)));
  const decoder = new TextDecoder();
  let rest = "";
  let firstLine = 1;
  for (let position = 0; ; ) {
    const got = await readAt(file, position, buffer);
    if (got === 0) break;
    if (position === 0 && buffer.subarray(0, Math.min(got, BINARY_PROBE_BYTES)).includes(0)) return;
    position += got;
    const lines = (rest + decoder.decode(buffer.subarray(0, got), { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_CHARS_MAX) {
      lines.push(rest);
      rest = "";
    }
    yield { firstLine, lines };
    firstLine += lines.length;
  }
  if (rest !== "") yield { firstLine, lines: [rest] };
}
