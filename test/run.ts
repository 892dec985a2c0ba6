/**
 * Runs every test file with Node's own runner. `--long` also runs the long variants (files named *.long.ts and the
 * full rounds of the crash and fuzz suites); further arguments are file filters.
 */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "./postgres.ts";

const args = process.argv.slice(2);
const long = args.includes("--long");
const filters = args.filter((arg) => !arg.startsWith("--"));

const patterns = ["src/**/*.test.ts", "test/**/*.test.ts", ...(long ? ["test/**/*.long.ts"] : [])];
const files = globSync(patterns)
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
if (files.length === 0) {
  console.error(`No test file matches ${filters.join(", ")}.`);
  process.exit(1);
}

const postgres = await startPostgres();
if ("reason" in postgres) console.error(`PostgreSQL suites are skipped: ${postgres.reason}.`);

const runner = spawn(process.execPath, ["--test", "--test-concurrency=2", "--test-timeout=600000", ...files], {
  stdio: "inherit",
  env: {
    ...process.env,
    NODE_ENV: "test",
    // Hundreds of processes load the same sources: stripped of types and compiled once, a fifth of the time is saved.
    NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/berth-test"),
    BERTH_TEST_POSTGRES: "url" in postgres ? postgres.url : "none",
    ...(long ? { BERTH_TEST_LONG: "1" } : {}),
  },
});
runner.on("exit", async (code) => {
  if ("stop" in postgres) await postgres.stop();
  process.exit(code ?? 1);
});
