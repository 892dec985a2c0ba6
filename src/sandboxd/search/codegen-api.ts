/** /codegen: merge an edit into a file, and rank files for a question. */

import { closeSync } from "node:fs";
import type { Daemon } from "../daemon-context.ts";
import { type BytePath, pathFromUrl, toText } from "../files/byte-path.ts";
import { openRegular, textSource, writeWhole } from "../files/file-io.ts";
import { ApiError } from "../http/api-error.ts";
import { type Call, field, integerQuery, readJson, requiredText } from "../http/call.ts";
import { readText } from "../http/json-stream.ts";
import { sendJson } from "../http/send.ts";
import { applyEdit, rankFiles, requireProvider, type SourceFile } from "./codegen.ts";
import { EXCLUDED_FOLDERS, walk } from "./file-walk.ts";
import { nameMatcher, splitPatterns } from "./glob.ts";

const FILE_BYTES_MAX = 1024 * 1024;
const RANK_FILES_MAX = 500;
const RANK_BYTES_MAX = 8 * 1024 * 1024;
const SCORE_THRESHOLD = 0.5;
const TOKEN_LIMIT = 30_000;

export async function fastApply(call: Call): Promise<void> {
  requireProvider(call.daemon.environment);
  const body = await readJson(call);
  const path = pathFromUrl(call.params[0] ?? "", call.daemon.environment.pathBase);
  const edit = { update: requiredText(body, "codeEdit"), instruction: "", model: field(body, "model", "string") };
  const done = await editFile(call.daemon, path, edit, call.signal);
  sendJson(call.res, 200, { success: true, path: toText(path), ...done, message: "The edit was applied." });
}

export async function rerank(call: Call): Promise<void> {
  requireProvider(call.daemon.environment);
  const query = call.query.get("query") ?? "";
  if (query === "") throw new ApiError(400, 'The query parameter "query" is required.');
  const threshold = Number(call.query.get("scoreThreshold") || SCORE_THRESHOLD);
  if (!Number.isFinite(threshold)) throw new ApiError(400, '"scoreThreshold" must be a number.');
  const root = pathFromUrl(call.params[0] ?? "", call.daemon.environment.pathBase);
  const files = await rankedFiles(call.daemon, {
    root,
    query,
    threshold,
    tokenLimit: integerQuery(call, "tokenLimit", TOKEN_LIMIT),
    filePattern: call.query.get("filePattern") ?? "",
    signal: call.signal,
  });
  sendJson(call.res, 200, { success: true, files, message: `${files.length} files fit the question.` });
}

export interface FileEdit {
  update: string;
  instruction: string;
  model?: string | undefined;
}

/** Merges an edit into a file. A file that does not exist counts as empty. */
export async function editFile(
  daemon: Daemon,
  path: BytePath,
  edit: FileEdit,
  signal: AbortSignal,
): Promise<{ originalContent: string; updatedContent: string; provider: string }> {
  const originalContent = (await contentOf(path)) ?? "";
  const request = { code: originalContent, update: edit.update, instruction: edit.instruction, model: edit.model };
  const [updatedContent, provider] = await applyEdit(daemon.environment, request, signal);
  writeWhole(path, updatedContent, { mode: undefined, user: daemon.environment.user });
  return { originalContent, updatedContent, provider };
}

export interface RankRequest {
  root: BytePath;
  query: string;
  threshold: number;
  tokenLimit: number;
  filePattern: string;
  signal: AbortSignal;
}

export async function rankedFiles(
  daemon: Daemon,
  { root, query, threshold, tokenLimit, filePattern, signal }: RankRequest,
): Promise<(SourceFile & { score: number })[]> {
  const fits = nameMatcher(splitPatterns(filePattern));
  const files: SourceFile[] = [];
  let bytes = 0;
  for await (const entry of walk(root, { excludeFolders: new Set(EXCLUDED_FOLDERS), excludeHidden: true, signal })) {
    if (entry.type !== "file" || !fits(entry.name)) continue;
    const content = await contentOf(entry.path);
    if (!content || content.includes("\0")) continue;
    bytes += content.length;
    if (files.length >= RANK_FILES_MAX || bytes > RANK_BYTES_MAX) break;
    files.push({ path: entry.relative, content });
  }
  if (files.length === 0) return [];
  const scores = await rankFiles(daemon.environment, { query, files, tokenLimit }, signal);
  return files
    .map((file) => ({ ...file, score: scores.get(file.path) ?? 0 }))
    .filter(({ score }) => score >= threshold)
    .sort((a, b) => b.score - a.score);
}

/** Undefined when the file does not exist. Refuses a file that is too large. */
async function contentOf(path: BytePath): Promise<string | undefined> {
  let file: ReturnType<typeof openRegular>;
  try {
    file = openRegular(path);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    return undefined;
  }
  try {
    if (file.stats.size > FILE_BYTES_MAX)
      throw new ApiError(422, `${toText(path)} is larger than ${FILE_BYTES_MAX} bytes.`);
    return await readText(textSource(file));
  } finally {
    closeSync(file.fd);
  }
}
