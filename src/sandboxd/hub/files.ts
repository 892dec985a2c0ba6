/**
 * The MCP server for the files of one folder, such as a volume. Refuses paths and links that lead out of the folder.
 */
import { mkdir, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { McpServer } from "../../lib/mcp/server.ts";
import { flag, type Tool, text } from "../../lib/mcp/tool.ts";
import { ApiError, errnoOf, toApiError } from "../http/api-error.ts";
import { VERSION } from "../version.ts";

export interface Folder {
  root: string;
}

/** Largest file to read: a model cannot use more, and the answer is held in memory. */
const READ_BYTES_MAX = 2 * 1024 * 1024;
const ENTRIES_MAX = 2000;
const MATCHES_MAX = 200;
/** Most files visited by one search. */
const VISITS_MAX = 50_000;

const path = { path: text("Below the folder that this server is for") };

const TOOLS: Tool<Folder>[] = [
  {
    name: "listDirectory",
    description: "List the files and folders in a folder.",
    properties: path,
    required: [],
    async run(folder, args) {
      const at = await inside(folder, args.path ?? ".");
      const entries = await readdir(at, { withFileTypes: true });
      entries.sort((a, b) => a.name.localeCompare(b.name));
      return {
        entries: entries.slice(0, ENTRIES_MAX).map((entry) => ({
          name: entry.name,
          type: entry.isDirectory() ? "folder" : entry.isFile() ? "file" : "other",
        })),
        truncated: entries.length > ENTRIES_MAX,
      };
    },
  },
  {
    name: "readFile",
    description: "Read a text file.",
    properties: path,
    required: ["path"],
    run: async (folder, args) => ({ content: await read(await inside(folder, args.path)) }),
  },
  {
    name: "writeFile",
    description: "Create or replace a text file; folders on the way are made.",
    properties: { ...path, content: text("The whole content") },
    required: ["path", "content"],
    async run(folder, args) {
      const at = await inside(folder, args.path);
      await mkdir(dirname(at), { recursive: true });
      await writeFile(at, String(args.content));
      return { path: relative(folder.root, at), bytes: Buffer.byteLength(String(args.content)) };
    },
  },
  {
    name: "editFile",
    description: "Replace a passage of a text file, which must occur exactly once unless replaceAll is set.",
    properties: {
      ...path,
      oldText: text("The passage"),
      newText: text("What takes its place"),
      replaceAll: flag("Replace every occurrence"),
    },
    required: ["path", "oldText", "newText"],
    async run(folder, args) {
      const at = await inside(folder, args.path);
      const content = await read(at);
      const parts = content.split(String(args.oldText));
      if (args.oldText === "" || parts.length < 2) throw new ApiError(400, "The passage does not occur.");
      if (parts.length > 2 && args.replaceAll !== true)
        throw new ApiError(400, `The passage occurs ${parts.length - 1} times.`);
      await writeFile(at, parts.join(String(args.newText)));
      return { replaced: parts.length - 1 };
    },
  },
  {
    name: "createDirectory",
    description: "Make a folder, and those above it.",
    properties: path,
    required: ["path"],
    async run(folder, args) {
      await mkdir(await inside(folder, args.path), { recursive: true });
      return {};
    },
  },
  {
    name: "moveFile",
    description: "Move or rename a file or folder.",
    properties: { from: text("Where it is"), to: text("Where it is to be") },
    required: ["from", "to"],
    async run(folder, args) {
      const [from, to] = [await inside(folder, args.from), await inside(folder, args.to)];
      await mkdir(dirname(to), { recursive: true });
      await rename(from, to);
      return {};
    },
  },
  {
    name: "deleteFile",
    description: "Delete a file, or a folder with all that is in it when recursive is set.",
    properties: { ...path, recursive: flag("Needed for a folder") },
    required: ["path"],
    async run(folder, args) {
      const at = await inside(folder, args.path);
      if (at === folder.root) throw new ApiError(400, "The folder itself stays.");
      await rm(at, { recursive: args.recursive === true });
      return {};
    },
  },
  {
    name: "searchFiles",
    description: "Find files whose path, or whose text when content is set, contains a word.",
    properties: {
      query: text("The word; upper and lower case count alike"),
      content: flag("Search in the text"),
      ...path,
    },
    required: ["query"],
    run: (folder, args, signal) => search(folder, args, signal),
  },
];

export const FILES_SERVER: McpServer<Folder> = {
  info: { name: "filesystem", version: VERSION },
  instructions: "Tools for the files of one folder. Paths are relative to it.",
  tools: () => TOOLS,
  explain: (error) => toApiError(error).message,
};

async function inside({ root }: Folder, given: unknown): Promise<string> {
  const at = resolve(root, String(given).startsWith(root) ? String(given) : `./${String(given)}`);
  if (!isBelow(root, at) || !isBelow(root, await settled(at)))
    throw new ApiError(403, "That is outside of the folder.");
  return at;
}

const isBelow = (root: string, at: string): boolean =>
  at === root || at.startsWith(root.endsWith(sep) ? root : root + sep);

/** The real path. For a path that does not exist yet: the real path of its nearest existing parent, plus the rest. */
async function settled(at: string): Promise<string> {
  try {
    return await realpath(at);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" || dirname(at) === at) throw error;
    return join(await settled(dirname(at)), at.slice(dirname(at).length));
  }
}

async function read(at: string): Promise<string> {
  const about = await stat(at);
  if (!about.isFile()) throw new ApiError(400, "It is not a regular file.");
  if (about.size > READ_BYTES_MAX) throw new ApiError(400, `It has more than ${READ_BYTES_MAX} bytes.`);
  return readFile(at, "utf8");
}

async function search(folder: Folder, args: Record<string, unknown>, signal: AbortSignal) {
  const start = await inside(folder, args.path ?? ".");
  const word = String(args.query).toLowerCase();
  const matches: { path: string; line?: number; text?: string }[] = [];
  const waiting = [start];
  for (let visits = 0; waiting.length > 0 && matches.length < MATCHES_MAX && visits < VISITS_MAX; ) {
    const at = waiting.pop() ?? start;
    for (const entry of await readdir(at, { withFileTypes: true }).catch(() => [])) {
      signal.throwIfAborted();
      visits += 1;
      const full = join(at, entry.name);
      if (entry.isDirectory()) waiting.push(full);
      const name = relative(folder.root, full);
      if (args.content !== true && name.toLowerCase().includes(word)) matches.push({ path: name });
      if (args.content === true && entry.isFile()) matches.push(...(await linesWith(full, name, word)));
    }
  }
  return { matches: matches.slice(0, MATCHES_MAX), truncated: matches.length >= MATCHES_MAX || waiting.length > 0 };
}

const LINE_CHARS_MAX = 300;

async function linesWith(at: string, name: string, word: string) {
  const content = await read(at).catch(() => ""); // too large to be a text, or gone
  return content
    .split("\n")
    .flatMap((line, index) =>
      line.toLowerCase().includes(word) ? [{ path: name, line: index + 1, text: line.slice(0, LINE_CHARS_MAX) }] : [],
    );
}
