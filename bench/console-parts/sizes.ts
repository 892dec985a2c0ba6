/**
 * The sizes of the console: what the first page loads, and what the terminal, the editor and the charts add. Each is
 * beside its limit; a figure over its limit is a failure.
 */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { consoleBundle } from "../../src/api/console/bundle.ts";

const KB = 1024;
const LIMITS_KB = { first: 60, terminal: 200, editor: 200, charts: 90 } as const;

/** A word that only the chunk of the part has. */
const MARKS: Readonly<Record<Exclude<keyof typeof LIMITS_KB, "first">, string>> = {
  terminal: "xterm-rows",
  editor: "cm-activeLineGutter",
  charts: "u-legend",
};

/** Bytes of the first page, for a static page of the same size. */
export async function sizes(): Promise<number> {
  const started = performance.now();
  const { folder, script, early, style } = await consoleBundle(null);
  console.log(`bundle ready after ${Math.round(performance.now() - started)} ms (0 when it was there)`);
  const first = [script, early, style].reduce((sum, file) => sum + gzipped(folder, file), 0);
  report("first", first);
  for (const part of Object.keys(MARKS) as (keyof typeof MARKS)[]) {
    const files = chunksWith(folder, script, MARKS[part]);
    report(part, first + files.reduce((sum, file) => sum + gzipped(folder, file), 0));
  }
  return statSync(join(folder, script)).size + statSync(join(folder, style)).size;
}

function report(part: keyof typeof LIMITS_KB, bytes: number): void {
  const kilobytes = bytes / KB;
  const isOver = kilobytes > LIMITS_KB[part];
  console.log(
    `${part.padEnd(10)} ${kilobytes.toFixed(1).padStart(6)} KB gzip of ${LIMITS_KB[part]}${isOver ? "  OVER" : ""}`,
  );
  if (isOver) process.exitCode = 1;
}

const gzipped = (folder: string, file: string): number => statSync(join(folder, `${file}.gz`)).size;
const read = (folder: string, file: string): string => readFileSync(join(folder, file), "utf8");

/** The chunk with the word, and all that it imports statically. */
function chunksWith(folder: string, script: string, word: string): string[] {
  const lazy = [...read(folder, script).matchAll(/import\("\.\/(chunk-\w+\.js)"\)/g)].map((match) => match[1] ?? "");
  const all = new Set(lazy.flatMap((file) => [file, ...dynamicOf(folder, file)]));
  const found = [...all].find((file) => read(folder, file).includes(word));
  if (found === undefined) throw new Error(`no chunk of the console has '${word}'`);
  return [found, ...staticOf(folder, found)];
}

const dynamicOf = (folder: string, file: string): string[] =>
  [...read(folder, file).matchAll(/import\("\.\/(chunk-\w+\.js)"\)/g)].map((match) => match[1] ?? "");

function staticOf(folder: string, file: string, seen = new Set<string>()): string[] {
  for (const [, next = ""] of read(folder, file).matchAll(/from"\.\/(chunk-\w+\.js)"/g))
    if (!seen.has(next)) {
      seen.add(next);
      staticOf(folder, next, seen);
    }
  return [...seen];
}
