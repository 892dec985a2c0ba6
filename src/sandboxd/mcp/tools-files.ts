/** Tools for files. */

import { closeSync } from "node:fs";
import { flag, text } from "../../lib/mcp/tool.ts";
import type { Daemon } from "../daemon-context.ts";
import { type BytePath, pathFromBody, toText } from "../files/byte-path.ts";
import { fileEntry, listFolder, parsePermissions } from "../files/entry.ts";
import { DEFAULT_FOLDER_MODE, makeFolder, openRegular, textSource, writeWhole } from "../files/file-io.ts";
import { remove, withSubject } from "../files/files-api.ts";
import { ApiError } from "../http/api-error.ts";
import { readText } from "../http/json-stream.ts";
import type { SandboxTool } from "./tool.ts";

/** Largest file to read: a model cannot use more, and the answer is held in memory. */
const READ_BYTES_MAX = 4 * 1024 * 1024;

const path = { path: text("Absolute, or relative to the working directory") };

export const FILE_TOOLS: SandboxTool[] = [
  {
    name: "fsListDirectory",
    description: "List the files and folders in a directory.",
    properties: path,
    required: ["path"],
    run: async (daemon, args) => ({ ...(await listFolder(pathOf(daemon, args.path))) }),
  },
  {
    name: "fsReadFile",
    description: "Read a text file.",
    properties: path,
    required: ["path"],
    run: async (daemon, args) => {
      const target = pathOf(daemon, args.path);
      const { content, entry } = await readWhole(target);
      return { ...entry, content };
    },
  },
  {
    name: "fsWriteFile",
    description: "Create or replace a file, or create a directory.",
    properties: {
      ...path,
      content: text("The new content"),
      permissions: text("Octal, such as 0644"),
      isDirectory: flag("Create a directory instead"),
    },
    required: ["path"],
    run: (daemon, args) => {
      const target = pathOf(daemon, args.path);
      const { user } = daemon.environment;
      const permissions = typeof args.permissions === "string" ? args.permissions : undefined;
      if (args.isDirectory === true) {
        makeFolder(target, parsePermissions(permissions, DEFAULT_FOLDER_MODE), user);
        return { path: toText(target), message: "Directory created successfully" };
      }
      const mode = permissions ? parsePermissions(permissions, 0) : undefined;
      withSubject(target, () => writeWhole(target, String(args.content ?? ""), { mode, user }));
      return { path: toText(target), message: "File created or updated successfully" };
    },
  },
  {
    name: "fsEditFile",
    description: "Replace a text in a file. The text must occur exactly once unless replaceAll is set.",
    properties: {
      ...path,
      oldString: text("The text to replace"),
      newString: text("What to put in its place"),
      replaceAll: flag("Replace every occurrence"),
    },
    required: ["path", "oldString", "newString"],
    run: async (daemon, args) => {
      const target = pathOf(daemon, args.path);
      const [from, to] = [String(args.oldString), String(args.newString)];
      if (from === "") throw new ApiError(400, "oldString must not be empty.");
      if (from === to) throw new ApiError(400, "newString must differ from oldString.");
      const { content } = await readWhole(target);
      const parts = content.split(from);
      const occurrences = parts.length - 1;
      if (occurrences === 0) throw new ApiError(422, "oldString does not occur in the file.");
      if (occurrences > 1 && args.replaceAll !== true) {
        throw new ApiError(
          422,
          `oldString occurs ${occurrences} times; add context to make it unique, or set replaceAll.`,
        );
      }
      writeWhole(target, parts.join(to), { mode: undefined, user: daemon.environment.user });
      return { path: toText(target), occurrencesReplaced: occurrences };
    },
  },
  {
    name: "fsDeleteFileOrDirectory",
    description: "Delete a file or a directory.",
    properties: {
      ...path,
      isDirectory: flag("It is a directory"),
      recursive: flag("Also delete what is in it"),
    },
    required: ["path"],
    run: async (daemon, args) => {
      const target = pathOf(daemon, args.path);
      await remove(target, args.recursive === true);
      return { path: toText(target), message: "Deleted successfully" };
    },
  },
];

export const pathOf = (daemon: Daemon, value: unknown): BytePath =>
  pathFromBody(String(value), daemon.environment.pathBase);

export async function readWhole(target: BytePath): Promise<{ content: string; entry: ReturnType<typeof fileEntry> }> {
  const file = withSubject(target, () => openRegular(target));
  try {
    if (file.stats.size > READ_BYTES_MAX) {
      throw new ApiError(422, `The file has ${file.stats.size} bytes; read a range of lines, or use the command line.`);
    }
    return { content: await readText(textSource(file)), entry: fileEntry(target, file.stats) };
  } finally {
    closeSync(file.fd);
  }
}
