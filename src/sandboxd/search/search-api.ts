/** Finds files by name, by fuzzy name and by content. */

import { closeSync, statSync } from "node:fs";
import { type BytePath, baseName, folderOf, pathFromUrl, toBytes, toText } from "../files/byte-path.ts";
import { openRegular } from "../files/file-io.ts";
import { ApiError } from "../http/api-error.ts";
import { booleanQuery, type Call, integerQuery } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { type ContentMatch, searchFile } from "./content-search.ts";
import { EXCLUDED_FOLDERS, type Walked, walk } from "./file-walk.ts";
import { fuzzyScore } from "./fuzzy-score.ts";
import { nameMatcher, splitPatterns } from "./glob.ts";

const FIND_DEFAULT = 20;
const FIND_MAX = 1000;
/** Most results when `maxResults=0` asks for all. */
const FIND_ALL_MAX = 100_000;
const CONTENT_DEFAULT = 100;
const CONTENT_MAX = 10_000;
const QUERY_CHARS_MAX = 1000;

export async function findFiles(call: Call): Promise<void> {
  const type = call.query.get("type") || "file";
  if (type !== "file" && type !== "directory") throw new ApiError(400, '"type" must be "file" or "directory".');
  const fits = nameMatcher(splitPatterns(call.query.get("patterns") ?? ""));
  const max = resultsMax(call, FIND_DEFAULT);
  const matches: { path: string; type: string }[] = [];
  const root = folderIn(call);
  for await (const entry of walkFor(call, root)) {
    if (entry.type !== type || !fits(entry.name)) continue;
    matches.push({ path: entry.relative, type });
    if (matches.length >= max) break;
  }
  // The root folder of the search counts as one of the folders found, though it has no relative path to list.
  const isRootCounted = type === "directory" && fits(toText(baseName(root)));
  sendJson(call.res, 200, { matches, total: matches.length + (isRootCounted ? 1 : 0) });
}

/**
 * Finds names that resemble the query. Without a `query` the path serves as both: its existing part is the folder to
 * search, and the rest (or else its last name) is the query.
 */
export async function searchFiles(call: Call): Promise<void> {
  const max = resultsMax(call, FIND_DEFAULT);
  const fits = nameMatcher(splitPatterns(call.query.get("patterns") ?? ""));
  const [root, wanted] = placeAndQuery(call);
  const found: { path: string; type: string; score: number }[] = [];
  for await (const entry of walkFor(call, root)) {
    if (entry.type === "other" || !fits(entry.name)) continue;
    const score = fuzzyScore(wanted, entry.relative);
    if (score === null) continue;
    found.push({ path: entry.relative, type: entry.type, score });
    if (found.length >= FIND_ALL_MAX) break;
  }
  found.sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  const matches = found.slice(0, max);
  sendJson(call.res, 200, { matches, total: matches.length });
}

export async function searchContent(call: Call): Promise<void> {
  const query = call.query.get("query") ?? "";
  if (query === "") throw new ApiError(400, 'The query parameter "query" is required.');
  if (query.length > QUERY_CHARS_MAX) throw new ApiError(400, `"query" has at most ${QUERY_CHARS_MAX} characters.`);
  const asked = integerQuery(call, "maxResults", CONTENT_DEFAULT);
  const max = Math.min(asked <= 0 ? CONTENT_DEFAULT : asked, CONTENT_MAX);
  const fits = nameMatcher(splitPatterns(call.query.get("filePattern") ?? ""));
  const options = { query, caseSensitive: booleanQuery(call, "caseSensitive", false) };
  const matches: ({ path: string } & ContentMatch)[] = [];
  const path = folderOrFile(call);
  if (statSync(toBytes(path)).isFile()) {
    for (const match of await inFile(path, options, max)) matches.push({ path: toText(baseName(path)), ...match });
  } else {
    for await (const entry of walkFor(call, path, false)) {
      if (entry.type !== "file" || !fits(entry.name)) continue;
      const found = await inFile(entry.path, options, max - matches.length);
      for (const match of found) matches.push({ path: entry.relative, ...match });
      if (matches.length >= max) break;
    }
  }
  sendJson(call.res, 200, { query, matches, total: matches.length });
}

async function inFile(
  path: BytePath,
  options: { query: string; caseSensitive: boolean },
  max: number,
): Promise<ContentMatch[]> {
  let file: ReturnType<typeof openRegular>;
  try {
    file = openRegular(path);
  } catch {
    return []; // removed, unreadable, or a link to something other than a file
  }
  try {
    return await searchFile(file, options, max);
  } finally {
    closeSync(file.fd);
  }
}

function walkFor(call: Call, root: BytePath, excludeHidden = true): AsyncGenerator<Walked> {
  const excluded = call.query.get("excludeDirs");
  return walk(root, {
    excludeFolders: new Set(excluded === null ? EXCLUDED_FOLDERS : splitPatterns(excluded)),
    excludeHidden: booleanQuery(call, "excludeHidden", excludeHidden),
    signal: call.signal,
  });
}

function resultsMax(call: Call, fallback: number): number {
  const asked = integerQuery(call, "maxResults", fallback);
  if (asked < 0) throw new ApiError(400, '"maxResults" must not be negative.');
  return asked === 0 ? FIND_ALL_MAX : Math.min(asked, FIND_MAX);
}

const pathOf = (call: Call): BytePath => pathFromUrl(call.params[0] ?? "", call.daemon.environment.pathBase);

function folderOrFile(call: Call): BytePath {
  const path = pathOf(call);
  if (!statSync(toBytes(path), { throwIfNoEntry: false })) {
    throw new ApiError(422, `${toText(path)}: no such file or directory`);
  }
  return path;
}

function folderIn(call: Call): BytePath {
  const path = folderOrFile(call);
  if (!statSync(toBytes(path)).isDirectory()) throw new ApiError(422, `${toText(path)} is not a directory.`);
  return path;
}

function placeAndQuery(call: Call): [BytePath, string] {
  const given = call.query.get("query");
  if (given) return [folderIn(call), given.slice(0, QUERY_CHARS_MAX)];
  const path = pathOf(call);
  if (isFolder(path)) return [path, path === "/" ? "" : toText(baseName(path))];
  let root = folderOf(path);
  while (!isFolder(root)) root = folderOf(root);
  return [root, toText(path.slice(root === "/" ? 1 : root.length + 1) as BytePath)];
}

const isFolder = (path: BytePath): boolean => {
  try {
    return statSync(toBytes(path), { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
};
