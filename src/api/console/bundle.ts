/**
 * The files of the console: built by Bun at install, or at the first visit when they are missing, and kept by the digest
 * of their sources. Names contain a hash of the content, and each file has a `.br` and a `.gz` beside it.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip, constants as zlib } from "node:zlib";
import { findBun } from "../../lib/bun-program.ts";
import { ROOT } from "../../lib/root.ts";

const SOURCES = ["console/**/*.{ts,tsx,css,svg,json}", "package-lock.json", "src/api/console/bundle.ts"];
const ENTRIES = ["console/main.tsx", "console/early.ts"];
const ICON = "console/icon.svg";
const BUILD_TIMEOUT_MS = 120_000;
/** Builds of older sources that stay, for pages that are still open. */
const BUILDS_KEPT = 2;
const COMPRESSED = /\.(js|css|svg)$/;

export interface Bundle {
  folder: string;
  script: string;
  /** A small script that runs before the page is painted. */
  early: string;
  style: string;
  icon: string;
}

/** The bundle of these sources, from the installation or, where that cannot be written to, from `fallback`. */
export async function consoleBundle(fallback: string | null): Promise<Bundle> {
  const name = `console-${digestOf(SOURCES)}`;
  const folders = [join(ROOT, "node_modules/.cache/berth"), ...(fallback === null ? [] : [fallback])];
  const found = folders.find((folder) => existsSync(join(folder, name)));
  if (found !== undefined) return read(join(found, name));
  for (const [at, folder] of folders.entries())
    try {
      return await build(folder, name);
    } catch (error) {
      // An installation that cannot be written to, such as one of another user.
      const isClosed = ["EACCES", "EROFS", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "");
      if (!isClosed || at === folders.length - 1) throw error;
    }
  throw new Error("there is no folder for the console");
}

function digestOf(patterns: readonly string[]): string {
  const digest = createHash("sha256");
  for (const file of globSync([...patterns], { cwd: ROOT }).sort())
    digest
      .update(file)
      .update("\0")
      .update(readFileSync(join(ROOT, file)));
  return digest.digest("hex").slice(0, 16);
}

function read(folder: string): Bundle {
  const names = readdirSync(folder);
  const named = (pattern: RegExp): string => {
    const name = names.find((one) => pattern.test(one));
    if (name === undefined) throw new Error(`${folder} has no ${pattern.source}`);
    return name;
  };
  return {
    ...{ folder, script: named(/^main-\w+\.js$/), early: named(/^early-\w+\.js$/) },
    ...{ style: named(/^main-\w+\.css$/), icon: named(/^icon-\w+\.svg$/) },
  };
}

/** Builds beside the target and renames, so that nobody is ever served half a bundle. */
async function build(folder: string, name: string): Promise<Bundle> {
  const bun = findBun();
  if (bun === null) throw new Error(`Bun is not installed for ${process.platform}-${process.arch}`);
  const unfinished = join(folder, `${name}.${process.pid}.new`);
  mkdirSync(unfinished, { recursive: true });
  try {
    const naming = ["--entry-naming=[name]-[hash].[ext]", "--chunk-naming=chunk-[hash].[ext]"];
    const args = ["build", ...ENTRIES, "--target=browser", "--format=esm", "--splitting", "--production", ...naming];
    await promisify(execFile)(bun, [...args, `--outdir=${unfinished}`], {
      cwd: ROOT,
      timeout: BUILD_TIMEOUT_MS,
    });
    cpSync(join(ROOT, ICON), join(unfinished, `icon-${digestOf([ICON])}.svg`));
    await Promise.all(readdirSync(unfinished).map((file) => compress(join(unfinished, file))));
    const target = join(folder, name);
    // Another process may have built the same meanwhile.
    if (!existsSync(target)) renameSync(unfinished, target);
    forgetOldBundles(folder);
    return read(target);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

async function compress(file: string): Promise<void> {
  if (!COMPRESSED.test(file)) return;
  const content = await readFile(file);
  const quality = { params: { [zlib.BROTLI_PARAM_QUALITY]: zlib.BROTLI_MAX_QUALITY } };
  await Promise.all([
    promisify(brotliCompress)(content, quality).then((small) => writeFile(`${file}.br`, small)),
    promisify(gzip)(content, { level: zlib.Z_BEST_COMPRESSION }).then((small) => writeFile(`${file}.gz`, small)),
  ]);
}

function forgetOldBundles(folder: string): void {
  const bundles = readdirSync(folder)
    .filter((name) => /^console-[0-9a-f]{16}$/.test(name))
    .map((name) => ({ path: join(folder, name), atMs: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.atMs - a.atMs);
  for (const { path } of bundles.slice(BUILDS_KEPT)) rmSync(path, { recursive: true, force: true });
}
