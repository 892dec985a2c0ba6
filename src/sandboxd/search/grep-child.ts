/** The child process of grep.ts: reads its request from the environment and prints `path:line:text`. */
import { closeSync } from "node:fs";
import { fromText } from "../files/byte-path.ts";
import { openRegular } from "../files/file-io.ts";
import { linesOf } from "./content-search.ts";
import { EXCLUDED_FOLDERS, walk } from "./file-walk.ts";
import { nameMatcher, splitPatterns } from "./glob.ts";
import type { GrepRequest } from "./grep.ts";

const RESULTS_MAX = 50;
/** Most characters of a line that the expression is tested against. */
const LINE_CHARS_MAX = 2000;

export async function runGrepChild(): Promise<void> {
  const request = JSON.parse(process.env.SANDBOXD_GREP ?? "{}") as GrepRequest;
  const expression = new RegExp(request.query, request.caseSensitive ? "" : "i");
  const included = nameMatcher(splitPatterns(request.include));
  const exclude = splitPatterns(request.exclude);
  const excluded = exclude.length > 0 ? nameMatcher(exclude) : () => false;
  const { signal } = new AbortController();
  let found = 0;
  for await (const entry of walk(fromText(request.root), {
    excludeFolders: new Set(EXCLUDED_FOLDERS),
    excludeHidden: false,
    signal,
  })) {
    if (entry.type !== "file" || !included(entry.name) || excluded(entry.name) || excluded(entry.relative)) continue;
    let file: ReturnType<typeof openRegular>;
    try {
      file = openRegular(entry.path);
    } catch {
      continue; // removed, or unreadable
    }
    for await (const { firstLine, lines } of linesOf(file)) {
      for (const [i, line] of lines.entries()) {
        const seen = line.slice(0, LINE_CHARS_MAX);
        if (!expression.test(seen)) continue;
        process.stdout.write(`${entry.relative}:${firstLine + i}:${seen}\n`);
        found += 1;
        if (found >= RESULTS_MAX) return;
      }
    }
    closeSync(file.fd);
  }
}
