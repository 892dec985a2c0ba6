/** Tools that coding agents expect: searching, reading ranges, and edits merged by a model. */

import { flag, integer, list, number, text } from "../../lib/mcp/tool.ts";
import type { Daemon } from "../daemon-context.ts";
import { type BytePath, fromText, toText } from "../files/byte-path.ts";
import { listFolder } from "../files/entry.ts";
import { ApiError } from "../http/api-error.ts";
import { requireProvider } from "../search/codegen.ts";
import { editFile, rankedFiles } from "../search/codegen-api.ts";
import { EXCLUDED_FOLDERS, walk } from "../search/file-walk.ts";
import { fuzzyScore } from "../search/fuzzy-score.ts";
import { grep } from "../search/grep.ts";
import { keywordSearch } from "../search/keyword-search.ts";
import type { SandboxTool } from "./tool.ts";
import { pathOf, readWhole } from "./tools-files.ts";

const FILE_MATCHES_MAX = 10;
const RANGE_LINES_MAX = 250;
const REGIONS_MAX = 20;
const EDITS_REMEMBERED_MAX = 100;

/** The last edit of each file, for repeating it. */
const lastEdits = new Map<BytePath, { update: string; instruction: string; original: string }>();

export const CODEGEN_TOOLS: SandboxTool[] = [
  {
    name: "codegenFileSearch",
    description: "Find files whose path looks like the query; at most 10.",
    properties: { query: text("A few letters of the name"), directory: text("Where to look") },
    required: ["query"],
    run: async (daemon, args, signal) => {
      const found: { path: string; score: number }[] = [];
      for await (const entry of walkIn(daemon, args.directory ?? ".", signal)) {
        const score = entry.type === "file" ? fuzzyScore(String(args.query), entry.relative) : null;
        if (score !== null) found.push({ path: entry.relative, score });
      }
      found.sort((a, b) => b.score - a.score || a.path.length - b.path.length);
      return { matches: found.slice(0, FILE_MATCHES_MAX), total: Math.min(found.length, FILE_MATCHES_MAX) };
    },
  },
  {
    name: "codegenCodebaseSearch",
    description: "Find the files that speak most of what the query asks, by its words.",
    properties: {
      query: text("What to look for"),
      targetDirectories: list("Where to look", { items: { type: "string" } }),
    },
    required: ["query"],
    run: async (daemon, args, signal) => {
      const roots =
        Array.isArray(args.targetDirectories) && args.targetDirectories.length > 0 ? args.targetDirectories : ["."];
      const results = await keywordSearch(
        roots.map((root) => pathOf(daemon, root)),
        String(args.query),
        signal,
      );
      return { results };
    },
  },
  {
    name: "codegenGrepSearch",
    description: "Find lines that match a regular expression.",
    properties: {
      query: text("Regular expression"),
      caseSensitive: flag("Distinguish capitals"),
      includePattern: text("Only files whose name matches, such as *.ts"),
      excludePattern: text("Not files whose name matches"),
    },
    required: ["query"],
    run: async (daemon, args, signal) =>
      grep(
        {
          root: toText(pathOf(daemon, ".")),
          query: String(args.query),
          caseSensitive: args.caseSensitive === true,
          include: String(args.includePattern ?? ""),
          exclude: String(args.excludePattern ?? ""),
        },
        signal,
      ),
  },
  {
    name: "codegenReadFileRange",
    description: "Read lines of a file; at most 250.",
    properties: {
      targetFile: text("The file"),
      startLineOneIndexed: integer("First line, from 1"),
      endLineOneIndexedInclusive: integer("Last line"),
    },
    required: ["targetFile", "startLineOneIndexed", "endLineOneIndexedInclusive"],
    run: async (daemon, args) => {
      const [first, last] = [Number(args.startLineOneIndexed), Number(args.endLineOneIndexedInclusive)];
      if (first < 1 || last < first)
        throw new ApiError(400, "The range must begin at 1 or later and not end before it begins.");
      if (last - first >= RANGE_LINES_MAX)
        throw new ApiError(400, `At most ${RANGE_LINES_MAX} lines can be read at once.`);
      const lines = (await readWhole(pathOf(daemon, args.targetFile))).content.split("\n");
      return {
        content: lines.slice(first - 1, last).join("\n"),
        startLine: first,
        endLine: Math.min(last, lines.length),
        totalLines: lines.length,
      };
    },
  },
  {
    name: "codegenListDir",
    description: "List a directory.",
    properties: { relativeWorkspacePath: text("Relative to the working directory") },
    required: ["relativeWorkspacePath"],
    run: async (daemon, args) => ({ ...(await listFolder(pathOf(daemon, args.relativeWorkspacePath))) }),
  },
  {
    name: "codegenReapply",
    description: "Merge the last edit of a file again, into the file as it was before that edit.",
    properties: { targetFile: text("The file") },
    required: ["targetFile"],
    run: async (daemon, args, signal) => {
      const path = pathOf(daemon, args.targetFile);
      const last = lastEdits.get(path);
      if (!last) throw new ApiError(422, `${toText(path)} has no edit to apply again; use codegenEditFile first.`);
      const { writeWhole } = await import("../files/file-io.ts");
      writeWhole(path, last.original, { mode: undefined, user: daemon.environment.user });
      await editFile(daemon, path, last, signal);
      return { message: `The last edit of ${toText(path)} was applied again.` };
    },
  },
  {
    name: "codegenParallelApply",
    description: "Apply one plan to several files with the configured code model.",
    properties: {
      editPlan: text("What to change"),
      editRegions: list("Where", {
        items: {
          type: "object",
          properties: {
            relativeWorkspacePath: { type: "string" },
            startLine: { type: "integer" },
            endLine: { type: "integer" },
          },
          required: ["relativeWorkspacePath"],
        },
      }),
    },
    required: ["editPlan", "editRegions"],
    run: async (daemon, args, signal) => {
      requireProvider(daemon.environment);
      const regions = regionsOf(args.editRegions);
      const plan = String(args.editPlan);
      await Promise.all(
        regions.map(({ path, lines }) => {
          const instruction = lines ? `${plan}\nOnly change ${lines}.` : plan;
          return editFile(daemon, pathOf(daemon, path), { update: plan, instruction }, signal);
        }),
      );
      return { message: `The plan was applied to ${regions.length} files.` };
    },
  },
  {
    name: "codegenEditFile",
    description: "Merge an edit into a file with the configured code model.",
    properties: {
      targetFile: text("The file"),
      instructions: text("One sentence on what the edit does"),
      codeEdit: text("The changed parts, with comments in place of what stays"),
    },
    required: ["targetFile", "instructions", "codeEdit"],
    needsProvider: true,
    run: async (daemon, args, signal) => {
      const path = pathOf(daemon, args.targetFile);
      const edit = { update: String(args.codeEdit), instruction: String(args.instructions) };
      const { originalContent, updatedContent } = await editFile(daemon, path, edit, signal);
      remember(path, { ...edit, original: originalContent });
      return { filePath: toText(path), changesApplied: originalContent !== updatedContent };
    },
  },
  {
    name: "codegenRerank",
    description: "Rank the files of a directory by how much they matter for a question.",
    properties: {
      path: text("The directory"),
      query: text("The question"),
      scoreThreshold: number("Only files with at least this score, default 0.5"),
      tokenLimit: integer("How much the ranking may read, default 30000"),
      filePattern: text("Only files whose name matches"),
    },
    required: ["path", "query"],
    needsProvider: true,
    run: async (daemon, args, signal) => ({
      files: await rankedFiles(daemon, {
        root: pathOf(daemon, args.path),
        query: String(args.query),
        threshold: Number(args.scoreThreshold ?? 0.5),
        tokenLimit: Number(args.tokenLimit ?? 30_000),
        filePattern: String(args.filePattern ?? ""),
        signal,
      }),
    }),
  },
];

const walkIn = (daemon: Daemon, directory: unknown, signal: AbortSignal) =>
  walk(pathOf(daemon, directory), { excludeFolders: new Set(EXCLUDED_FOLDERS), excludeHidden: true, signal });

function remember(path: BytePath, edit: { update: string; instruction: string; original: string }): void {
  lastEdits.delete(path);
  lastEdits.set(path, edit);
  const [oldest] = lastEdits.keys();
  if (lastEdits.size > EDITS_REMEMBERED_MAX && oldest !== undefined) lastEdits.delete(oldest);
}

function regionsOf(value: unknown): { path: string; lines: string | null }[] {
  const regions = value as { relativeWorkspacePath?: unknown; startLine?: unknown; endLine?: unknown }[];
  if (regions.length === 0 || regions.length > REGIONS_MAX)
    throw new ApiError(400, `Give 1 to ${REGIONS_MAX} regions.`);
  return regions.map(({ relativeWorkspacePath, startLine, endLine }) => {
    if (typeof relativeWorkspacePath !== "string") throw new ApiError(400, "A region needs a relativeWorkspacePath.");
    const lines = startLine === undefined ? null : `lines ${Number(startLine)} to ${Number(endLine ?? startLine)}`;
    return { path: toText(fromText(relativeWorkspacePath)), lines };
  });
}
