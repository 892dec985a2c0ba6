import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Limits } from "./file-run.ts";
import { unfinished } from "./held.ts";
import { endProcess, processesOf } from "./left-behind.ts";
import { runnerOptions } from "./options.ts";
import type { Outcome } from "./outcome.ts";
import { fileReport, finalReport, timesReport } from "./report.ts";
import { runFiles } from "./runner.ts";
import { alone, processesFor } from "./sharing.ts";

const PATIENT: Limits = { testMs: 300_000, fileMs: 300_000, lingerMs: 300_000, graceMs: 60_000 };

/** Writes the files into a folder of their own and runs them, one after the other, or all in one process. */
async function running(
  t: TestContext,
  files: Record<string, string>,
  { shared = false, ...limits }: Partial<Limits> & { shared?: boolean } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "runner-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const paths = Object.entries(files).map(([name, text]) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  });
  const printed: string[] = [];
  const outcomes = await runFiles({
    processes: shared ? [paths] : paths.map((path) => [path]),
    lanes: 1,
    env: { ...process.env, MARK: folder },
    limits: { ...PATIENT, ...limits },
    print: (text) => printed.push(text),
    signal: new AbortController().signal,
  });
  return { outcomes, printed, folder, end: finalReport(outcomes, 0) };
}

const countsOf = ({ counts }: Outcome) => [counts.tests, counts.pass, counts.fail, counts.skipped];

test("files run to their end, and all that failed is told again at the very end", async (t) => {
  const { outcomes, end } = await running(t, {
    "red.test.mjs": `
      import { describe, test } from "node:test";
      describe("outer", () => {
        test("good", () => {});
        test("bad", () => { throw new Error("the reason"); });
        test("not here", { skip: "no such machine" }, () => {});
      });`,
    "broken.test.mjs": `import "./nowhere.mjs";`,
    "green.test.mjs": `import { test } from "node:test"; test("fine", () => {});`,
  });
  assert.deepEqual(outcomes.map(countsOf), [
    [3, 1, 1, 1],
    [1, 0, 1, 0],
    [1, 1, 0, 0],
  ]);
  assert.match(end, /^# tests 5\n# suites 1\n# pass 2\n# fail 2\n# cancelled 0\n# skipped 1\n/m);
  const tail = end.slice(end.indexOf("# duration_ms"));
  assert.match(tail, /✖ \S*red\.test\.mjs › outer › bad: Error: the reason/);
  assert.match(tail, /✖ \S*broken\.test\.mjs: the file's process ended with 1/);
  assert.match(end, /Cannot find module/);
  assert.match(timesReport(outcomes), /^ +\d+\.\d s +\d+\.\d s CPU {2}3 files together$/m);
  assert.ok((outcomes[2]?.cpuSeconds ?? 0) > 0, "the CPU time of a file is known");
  assert.match(fileReport(outcomes[0] as Outcome), /﹣ not here \(\d+ ms\) # SKIP no such machine/);
});

test("one more file is begun while the machine is idle", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "runner-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const paths = ["one", "other"].map((name) => join(folder, `${name}.test.mjs`));
  for (const path of paths)
    writeFileSync(
      path,
      `import { readdirSync, writeFileSync } from "node:fs";
       import { test } from "node:test";
       test("meets the other", async () => {
         writeFileSync(import.meta.filename + ".here", "");
         const here = () => readdirSync(import.meta.dirname).filter((name) => name.endsWith(".here")).length;
         while (here() < 2) await new Promise((resolve) => setTimeout(resolve, 10));
       });`,
    );
  let looks = 0;
  const outcomes = await runFiles({
    processes: paths.map((path) => [path]),
    lanes: 1,
    spareLanes: 1,
    isIdle: async () => {
      await delay(1); // as the real one, it gives way to what runs
      looks += 1;
      return looks > 3;
    },
    env: process.env,
    limits: PATIENT,
    print: () => {},
    signal: new AbortController().signal,
  });
  assert.deepEqual(outcomes.map(countsOf), [
    [1, 1, 0, 0],
    [1, 1, 0, 0],
  ]);
});

test("a file that does not end after its tests is ended with what held it, and the run goes on", async (t) => {
  const leak = `
    import { test } from "node:test";
    import { spawn } from "node:child_process";
    import { createServer } from "node:http";
    test("leaves a server", () => {
      createServer().listen(0, "127.0.0.1");
      spawn("sleep", [process.env.MARK.length + "00000"], { stdio: "ignore" });
      throw new Error("before it closed");
    });`;
  const files = { "a.test.mjs": leak, "b.test.mjs": leak };
  const { outcomes, end } = await running(t, files, { lingerMs: 2_000 });
  assert.deepEqual(outcomes.map(countsOf), [
    [2, 0, 2, 0],
    [2, 0, 2, 0],
  ]);
  for (const name of ["a", "b"])
    assert.match(end, new RegExp(`${name}\\.test\\.mjs: \\S*${name}\\.test\\.mjs did not end for 2 s after its last`));
  assert.match(end, /all its tests had finished/);
  assert.match(end, /held by tcp server listening on 127\.0\.0\.1:\d+/);
  assert.match(end, /held by process \d+: sleep \d+/);
  assert.match(end, /✖ \S*a\.test\.mjs › leaves a server: Error: before it closed/);
});

test("a file that takes for ever is ended with its name", async (t) => {
  const { outcomes, end } = await running(
    t,
    {
      "endless.test.mjs": `import { test } from "node:test"; test("waits", () => new Promise(() => setInterval(() => {}, 1000)));`,
    },
    { fileMs: 3_000 },
  );
  assert.equal(outcomes[0]?.counts.fail, 1);
  assert.match(end, /endless\.test\.mjs did not end within 3 s and was ended/);
});

test("tests that have not finished are known from the events so far", () => {
  const events = [
    { type: "enqueued", id: 1, nesting: 0, name: "outer" },
    { type: "enqueued", id: 2, nesting: 1, name: "done" },
    { type: "completed", id: 2, nesting: 1, name: "done" },
    { type: "enqueued", id: 3, nesting: 1, name: "hangs" },
  ];
  const lines = events.map((event) => JSON.stringify(event)).join("\n");
  assert.deepEqual(unfinished(`${lines}\n{"type":"enq`), ["outer", "hangs"]);
});

test("what a green file leaves on the machine is told and taken away", async (t) => {
  const { outcomes, end } = await running(
    t,
    {
      "leaves.test.mjs": `
        import { test } from "node:test";
        import { spawn } from "node:child_process";
        import { mkdtempSync } from "node:fs";
        import { tmpdir } from "node:os";
        import { join } from "node:path";
        test("fine", () => {
          const cwd = mkdtempSync(join(tmpdir(), "data-"));
          spawn("sleep", ["1000000"], { cwd, detached: true, stdio: "ignore" }).unref();
        });`,
    },
    { graceMs: 1_000 },
  );
  const [outcome] = outcomes as [Outcome];
  assert.deepEqual(countsOf(outcome), [1, 1, 0, 0]);
  const pid = Number(/process (\d+): sleep 1000000/.exec(outcome.leftBehind.join("\n"))?.[1]);
  const folder = /folder (\S+)/.exec(outcome.leftBehind.join("\n"))?.[1] ?? "";
  assert.match(folder, /data-/);
  assert.match(end, /⚠ \S*leaves\.test\.mjs: process \d+: sleep/);
  assert.ok(pid > 0);
  // A killed process stays in the list of the kernel for a moment.
  while (processesOf({ folder }).length > 0) await delay(10);
});

test("a process is found by a mount of its own too", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "runner-"));
  mkdirSync(join(folder, "m"));
  const script = `mount -t tmpfs none "$1/m" && cd / && echo ready && exec sleep 1000000`;
  const child = spawn("unshare", ["--map-root-user", "--mount", "sh", "-c", script, "sh", folder], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.after(() => {
    endProcess(child.pid as number);
    rmSync(folder, { recursive: true, force: true });
  });
  const [first] = await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => [null])]);
  if (first === null) return t.skip("this user may not make a mount namespace here");
  assert.deepEqual(processesOf({ folder }), [child.pid]);
});

test("the arguments of a run: unknown ones and values that mean nothing are refused", () => {
  const plain = { long: false, times: false, help: false, repeat: 1, seed: undefined, parts: [] };
  assert.deepEqual(runnerOptions([]), plain);
  assert.deepEqual(runnerOptions(["--long", "--repeat=4", "--break=7", "gateway/limits", "--times", "store/"]), {
    ...plain,
    ...{ long: true, repeat: 4, seed: "7", times: true, parts: ["gateway/limits", "store/"] },
  });
  for (const args of [["--times=4"], ["--repeat=0"], ["--repeat=x"], ["--repeat="], ["--repaet=4"]])
    assert.throws(() => runnerOptions(args), Error, args.join());
});

test("the longest files are begun first, each alone; small ones of a folder share a process, unless they change it", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "runner-"));
  const here = process.cwd();
  t.after(() => {
    process.chdir(here);
    rmSync(folder, { recursive: true, force: true });
  });
  process.chdir(folder);
  mkdirSync("src");
  for (const name of ["a", "b"]) writeFileSync(`src/${name}.test.ts`, "");
  writeFileSync("src/c.test.ts", `process.env.TZ = "UTC";`);
  const long = ["test/browser/pages.test.ts", "test/several/several.test.ts"];
  const files = ["src/c.test.ts", "src/b.test.ts", ...long, "src/a.test.ts", "test/x.test.ts"];
  assert.deepEqual(processesFor(files), [
    ["test/several/several.test.ts"],
    ["test/browser/pages.test.ts"],
    ["src/a.test.ts", "src/b.test.ts"],
    ["src/c.test.ts"],
    ["test/x.test.ts"],
  ]);
  assert.deepEqual(alone(["src/b.test.ts", ...long, "src/a.test.ts"]), [
    ["test/several/several.test.ts"],
    ["test/browser/pages.test.ts"],
    ["src/a.test.ts"],
    ["src/b.test.ts"],
  ]);
});

test("files that share a process are told apart; one that cannot be loaded does not keep the others from running", async (t) => {
  const file = (name: string): string => `
    import assert from "node:assert/strict";
    import { after, before, test } from "node:test";
    let open = false;
    before(() => { assert.equal(globalThis.open, undefined); globalThis.open = open = "${name}"; });
    after(() => { delete globalThis.open; });
    await new Promise((resolve) => setTimeout(resolve, 1));
    test("its own hooks", () => assert.equal(globalThis.open, "${name}"));`;
  const red = `test("bad", () => { throw new Error("the reason"); });`;
  const files = {
    "a.test.mjs": file("a"),
    "broken.test.mjs": `import "./nowhere.mjs";`,
    "b.test.mjs": file("b") + red,
    "c.test.mjs": file("c"),
  };
  const { outcomes, end, printed } = await running(t, files, { shared: true });
  assert.deepEqual(outcomes.map(countsOf), [
    [1, 1, 0, 0],
    [1, 0, 1, 0],
    [2, 1, 1, 0],
    [1, 1, 0, 0],
  ]);
  assert.match(end, /✖ \S*b\.test\.mjs › bad: Error: the reason/);
  assert.match(end, /✖ \S*broken\.test\.mjs.*Cannot find module/);
  assert.equal(printed.length, 4);
  assert.ok(outcomes.every(({ cpuSeconds }) => cpuSeconds >= 0) && (outcomes[0]?.cpuSeconds ?? 0) > 0);
});

test("when a shared process ends too early, the file that ended it and those that were not run are red", async (t) => {
  const good = `import { test } from "node:test"; test("fine", () => {});`;
  const files = {
    "a.test.mjs": good,
    // What is told is written a moment later: it waits until that of the first file is there.
    "b.test.mjs": `
      import { existsSync, readFileSync } from "node:fs";
      import { test } from "node:test";
      import { setTimeout as delay } from "node:timers/promises";
      test("kills", async () => {
        const told = process.execArgv.find((flag) => flag.includes("reporter-destination")).split("=")[1];
        const text = () => (existsSync(told) ? readFileSync(told, "utf8") : "");
        while (!/"passed".*a\\.test\\.mjs/.test(text())) await delay(10);
        process.kill(process.pid, "SIGKILL");
      });`,
    "c.test.mjs": good,
  };
  const { outcomes, end } = await running(t, files, { shared: true });
  assert.deepEqual(outcomes.map(countsOf), [
    [1, 1, 0, 0],
    [1, 0, 1, 0],
    [1, 0, 1, 0],
  ]);
  assert.match(end, /✖ \S*b\.test\.mjs: the file's process was ended by SIGKILL/);
  assert.match(
    end,
    /✖ \S*c\.test\.mjs: \S*c\.test\.mjs was not run: the process that it shared ended in \S*b\.test\.mjs/,
  );
});
