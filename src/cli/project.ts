/** A folder with code, as `berth deploy` sees it: its deploy file, and the archive that is sent. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { parse as parseToml } from "smol-toml";
import { UsageError } from "../lib/usage-error.ts";
import { interpolate, type Variables } from "./interpolate.ts";
import { isObject } from "./json-path.ts";

export const DEPLOY_FILES = ["berth.toml", "service.toml"];
const IGNORE_FILES = [".berthignore", ".serviceignore"];
const IGNORED = [
  ".berth",
  ".service",
  ".env",
  ".env.build",
  ".docker",
  ".git",
  "dist",
  ".venv",
  "venv",
  "node_modules",
  ".next",
  "__pycache__",
];
/** The archive is made in memory; what is larger belongs into a volume or an image. */
const PROJECT_BYTES_MAX = 256 * 1024 * 1024;
const BLOCK = 512;

export interface Project {
  name: string;
  kind: string;
  spec: Record<string, unknown>;
}

type Table = Record<string, unknown>;

export function readProject(dir: string, variables: Variables): Project {
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${dir} is not a folder.`);
  const file = DEPLOY_FILES.map((name) => join(dir, name)).find((path) => statSync(path, { throwIfNoEntry: false }));
  const table = file ? readToml(file) : {};
  const kind = typeof table.type === "string" ? table.type : "agent";
  const envs = Object.entries(isObject(table.env) ? table.env : {}).map(([name, value]) => ({
    name,
    value: interpolate(String(value), variables),
  }));
  const runtime: Table = { ...(isObject(table.runtime) ? table.runtime : {}), ...(envs.length > 0 ? { envs } : {}) };
  const members = ["triggers", "volumes", "policies", "region", "public"].filter((key) => table[key] !== undefined);
  const common = Object.fromEntries(members.map((key) => [key, table[key]]));
  const flat = Object.fromEntries(
    ["memory", "port"].flatMap((key) => (table[key] === undefined ? [] : [[key, table[key]]])),
  );
  return {
    name: typeof table.name === "string" ? table.name : basename(resolve(dir)),
    kind,
    spec: kind === "application" ? { ...common, ...runtime, ...flat } : { ...common, runtime },
  };
}

function readToml(file: string): Table {
  try {
    return parseToml(readFileSync(file, "utf8"));
  } catch (error) {
    throw new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A gzipped tar of everything but what is ignored; links are left out. */
export function archiveOf(dir: string): Buffer {
  const ignored = new Set(ignoredIn(dir));
  const blocks: Buffer[] = [];
  let bytes = 0;
  const walk = (below: string): void => {
    for (const entry of readdirSync(join(dir, below), { withFileTypes: true })) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (ignored.has(entry.name) || ignored.has(path)) continue;
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile()) {
        const content = readFileSync(join(dir, path));
        bytes += content.length;
        if (bytes > PROJECT_BYTES_MAX)
          throw new UsageError(
            `${dir} holds more than ${PROJECT_BYTES_MAX / 1024 / 1024} MB.`,
            "leave out what is not needed with .berthignore, one path per line",
          );
        const executable = (statSync(join(dir, path)).mode & 0o111) !== 0;
        blocks.push(...tarEntry(path, content, executable ? 0o755 : 0o644));
      }
    }
  };
  walk("");
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]));
}

/** A file of one's own replaces the usual list. */
function ignoredIn(dir: string): string[] {
  const file = IGNORE_FILES.map((name) => join(dir, name)).find((path) => statSync(path, { throwIfNoEntry: false }));
  if (!file) return IGNORED;
  const lines = readFileSync(file, "utf8").split("\n");
  return lines
    .map((line) => line.trim().replace(/^\.?\/|\/$/g, ""))
    .filter((line) => line !== "" && !line.startsWith("#"));
}

function tarEntry(path: string, content: Buffer, mode: number): Buffer[] {
  const name = Buffer.from(path);
  // A long path stands in a record of its own before the file.
  const long =
    name.length >= 100
      ? [header("././@LongLink", name.length + 1, 0o644, "L"), padded(Buffer.concat([name, Buffer.alloc(1)]))]
      : [];
  return [...long, header(name.subarray(0, 99).toString("latin1"), content.length, mode, "0"), padded(content)];
}

function header(path: string, size: number, mode: number, type: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(path, 0, "latin1");
  block.write(`${mode.toString(8).padStart(7, "0")}\0`, 100);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write(`        ${type}`, 148);
  block.write("ustar\0", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

const padded = (content: Buffer): Buffer =>
  Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
