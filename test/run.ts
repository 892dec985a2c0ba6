/**
 * Runs every test file with Node's own test runner, each in a process of its own (`runner/`). `--long` also runs the
 * long variants (files named *.long.ts and the full rounds of the crash and fuzz suites), `--times` prints how long
 * each file took, `--break=SEED` makes assertions fail by chance to see what failing tests leave open (`runner/break.ts`);
 * further arguments are parts of paths.
 */
import { globSync } from "node:fs";
import { join } from "node:path";
import { provideChromium } from "./browser/install.ts";
import { shareInstallation } from "./installed/installation.ts";
import { startPostgres } from "./postgres.ts";
import { finalReport, timesReport } from "./runner/report.ts";
import { runFiles } from "./runner/runner.ts";

const MINUTE_MS = 60_000;
/** Far more than the longest needs on a busy machine: only what hangs is ended. */
const LIMITS = { testMs: 10 * MINUTE_MS, fileMs: 20 * MINUTE_MS, lingerMs: 2 * MINUTE_MS, graceMs: MINUTE_MS / 2 };
const LONG_LIMITS = { testMs: 120 * MINUTE_MS, fileMs: 120 * MINUTE_MS, lingerMs: 5 * MINUTE_MS, graceMs: MINUTE_MS };
const BROKEN_LIMITS = { ...LIMITS, lingerMs: MINUTE_MS / 2 };
/** Suites of sandboxes and databases keep more than one core busy each. */
const LANES = 2;

const args = process.argv.slice(2);
const long = args.includes("--long");
const broken = args.find((arg) => arg.startsWith("--break="))?.slice("--break=".length);
const filters = args.filter((arg) => !arg.startsWith("--"));

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", ...(long ? ["test/**/*.long.ts"] : [])];
const files = globSync(patterns)
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
if (files.length === 0) {
  console.error(`No test file matches ${filters.join(", ")}.`);
  process.exit(1);
}

const aborted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => aborted.abort());

const started = performance.now();
const installation = await shareInstallation(files);
const postgres = await startPostgres();
if ("reason" in postgres) console.error(`PostgreSQL suites are skipped: ${postgres.reason}.`);
const chromium = provideChromium(files);
try {
  const outcomes = await runFiles({
    files,
    lanes: LANES,
    limits: broken === undefined ? (long ? LONG_LIMITS : LIMITS) : BROKEN_LIMITS,
    preload: broken === undefined ? [] : [join(import.meta.dirname, "runner/break.ts")],
    print: console.log,
    signal: aborted.signal,
    env: {
      ...process.env,
      NODE_ENV: "test",
      // Hundreds of processes load the same sources: stripped of types and compiled once, a fifth of the time is saved.
      NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/berth-test"),
      BERTH_TEST_POSTGRES: "url" in postgres ? postgres.url : "none",
      BERTH_TEST_CHROMIUM: chromium,
      ...(long ? { BERTH_TEST_LONG: "1" } : {}),
      ...(broken === undefined ? {} : { BERTH_TEST_BREAK: broken }),
      ...installation.env,
    },
  });
  if (args.includes("--times")) console.log(timesReport(outcomes));
  console.log(finalReport(outcomes, performance.now() - started));
  if (aborted.signal.aborted) console.log("The run was ended before its end.");
  const red = outcomes.some(({ failures }) => failures.length > 0);
  process.exitCode = red || aborted.signal.aborted || outcomes.length < files.length ? 1 : 0;
} finally {
  await installation.stop();
  if ("stop" in postgres) await postgres.stop();
}
