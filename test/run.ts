/**
 * Runs every test file with Node's own test runner, in a process of its own or in one that some share (`runner/`).
 * `--help` prints the options (`runner/options.ts`).
 */
import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { provideChromium } from "./browser/install.ts";
import { makeTemplate } from "./database-template.ts";
import { provideDocker } from "./docker/binaries.ts";
import { provideRunsc } from "./gvisor/binary.ts";
import { shareInstallation } from "./installed/installation.ts";
import { startPostgres, TEMPLATE_VARIABLE } from "./postgres.ts";
import { type RunnerOptions, runnerOptions, USAGE } from "./runner/options.ts";
import type { Outcome } from "./runner/outcome.ts";
import { finalReport, timesReport } from "./runner/report.ts";
import { runFiles } from "./runner/runner.ts";
import { alone, processesFor } from "./runner/sharing.ts";

const MINUTE_MS = 60_000;
/** Far more than the longest needs on a busy machine: only what hangs is ended. */
const LIMITS = { testMs: 10 * MINUTE_MS, fileMs: 20 * MINUTE_MS, lingerMs: 2 * MINUTE_MS, graceMs: MINUTE_MS / 2 };
const LONG_LIMITS = { testMs: 120 * MINUTE_MS, fileMs: 120 * MINUTE_MS, lingerMs: 5 * MINUTE_MS, graceMs: MINUTE_MS };
const BROKEN_LIMITS = { ...LIMITS, lingerMs: MINUTE_MS / 2 };
/** Processes at a time. A file waits for processes, timers and the disk now and then; many at once make waits of seconds too short. */
const LANES = availableParallelism() + 1;
/** And so many more while the machine is idle. */
const SPARE_LANES = availableParallelism();

/** Hundreds of processes load the same sources. */
const PACKED = join(import.meta.dirname, "runner/use-pack.js");

const { long, times, help, repeat, seed, parts } = optionsOrExit();
if (help) {
  console.log(USAGE);
  process.exit(0);
}

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", ...(long ? ["test/**/*.long.ts"] : [])];
const files = globSync(patterns).filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
if (files.length === 0) {
  console.error(`No test file matches ${parts.join(", ")}.`);
  process.exit(1);
}

execFileSync(process.execPath, [join(import.meta.dirname, "../scripts/module-pack.js")]);
const aborted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => aborted.abort());

const started = performance.now();
const postgres = await startPostgres();
if ("reason" in postgres) console.error(`PostgreSQL suites are skipped: ${postgres.reason}.`);
const template = "url" in postgres ? await makeTemplate(postgres.url) : null;
const chromium = provideChromium(files);
const docker = provideDocker(files);
const runsc = provideRunsc(files);
try {
  const outcomes: Outcome[] = [];
  for (let round = 0; round < repeat && !aborted.signal.aborted; round += 1) outcomes.push(...(await runRound()));
  if (times) console.log(timesReport(outcomes));
  console.log(finalReport(outcomes, performance.now() - started));
  if (aborted.signal.aborted) console.log("The run was ended before its end.");
  const red = outcomes.some(({ failures }) => failures.length > 0);
  process.exitCode = red || aborted.signal.aborted || outcomes.length < repeat * files.length ? 1 : 0;
} finally {
  await template?.remove().catch(() => {}); // a server that was ended together with the run has nothing left
  if ("stop" in postgres) await postgres.stop();
}

/** Every file once. An installation lasts for a round: its suites make workspaces that must not be there yet. */
async function runRound(): Promise<Outcome[]> {
  const installation = await shareInstallation(files);
  try {
    return await runFiles({
      // Long variants and broken tests have no consideration for others.
      processes: long || seed !== undefined ? alone(files) : processesFor(files),
      lanes: LANES,
      spareLanes: long ? 0 : SPARE_LANES,
      limits: seed === undefined ? (long ? LONG_LIMITS : LIMITS) : BROKEN_LIMITS,
      preload: [PACKED, ...(seed === undefined ? [] : [join(import.meta.dirname, "runner/break.ts")])],
      print: console.log,
      signal: aborted.signal,
      env: {
        ...process.env,
        NODE_ENV: "test",
        // Hundreds of processes load the same sources: stripped of types and compiled once, a fifth of the time is saved.
        NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/berth-test"),
        BERTH_TEST_POSTGRES: "url" in postgres ? postgres.url : "none",
        ...(template ? { [TEMPLATE_VARIABLE]: template.name } : {}),
        BERTH_TEST_CHROMIUM: chromium,
        BERTH_TEST_DOCKER: docker,
        BERTH_TEST_RUNSC: runsc,
        ...(long ? { BERTH_TEST_LONG: "1" } : {}),
        ...(seed === undefined ? {} : { BERTH_TEST_BREAK: seed }),
        ...installation.env,
      },
    });
  } finally {
    await installation.stop();
  }
}

function optionsOrExit(): RunnerOptions {
  try {
    return runnerOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}
