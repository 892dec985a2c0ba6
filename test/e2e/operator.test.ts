/** The commands about the server on this machine. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach, describe, test } from "node:test";
import type { Context } from "../../src/cli/command.ts";
import { loadConfig } from "../../src/config.ts";
import type { WorkloadRecord } from "../../src/node/drivers/local/workload/record.ts";
import { operatorCommands } from "../../src/operator/commands.ts";
import { probeIsolation } from "../../src/operator/runtime.ts";
import { type Ended, runBerth, startServer } from "../berth-process.ts";
import { testDatabases } from "../databases.ts";
import { tracesOf } from "../local/machine.ts";
import { eventually } from "../sandboxd-harness.ts";

const databases = await testDatabases();
const postgres = databases.all.find(({ name }) => name === "postgres");
after(() => databases.stop());

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "berth-operator-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const berth = (...args: string[]): Promise<Ended> => runBerth(args, { env: { BERTH_DATA: dataDir } });

/** State and text of each check of `berth doctor`. */
const checks = ({ stdout }: Ended): Record<string, string> =>
  Object.fromEntries(
    [
      ...stdout.matchAll(
        /^(ok|warning|problem) +(node|data folder|disk|database|port|credentials|clock|isolation) +(.*)$/gm,
      ),
    ].map(([, state, check, says]) => [check, `${state} ${says}`]),
  );

describe("a running server", () => {
  test("is known to doctor, which tries its key; down stops it and no other", async () => {
    const server = await startServer({ dataDir });
    const found = checks(await berth("doctor", "--port", new URL(server.url).port));
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const elsewhere = checks(await berth("doctor", "--port", String((other.address() as AddressInfo).port)));
    other.close();
    assert.ok(
      elsewhere.port?.startsWith(`ok this Berth runs at ${server.url} (pid ${server.child.pid},`),
      elsewhere.port,
    );
    assert.match(found.port ?? "", new RegExp(`^ok .*used by this Berth \\(pid ${server.child.pid},`));
    assert.match(found.credentials ?? "", /^ok .*accepted by /);
    assert.match(found.database ?? "", /^ok SQLite: up to date/);
    assert.match(found["data folder"] ?? "", /^ok /);
    assert.match(found.node ?? "", /^ok v\d+/);
    assert.match(found.isolation ?? "", /grade|isolate/);
    assert.deepEqual(Object.keys(found).length, 8);

    const nowhere = await runBerth(["down"], { env: { BERTH_DATA: join(dataDir, "other") } });
    assert.match(nowhere.stdout, /no server of .*other is running/);
    const ended = await berth("down");
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(ended.stdout, `stopped ${server.url} (pid ${server.child.pid})\n`);
    assert.deepEqual([(await server.ended).code, (await server.ended).signal], [0, null]);
    assert.deepEqual(readdirSync(join(dataDir, "run")), []);
  });
});

const { grade } = await probeIsolation(loadConfig({ flags: {}, env: {} }));
const skip = grade === "none" && "this machine cannot isolate workloads; see `berth doctor`";

describe("down with workloads", { skip }, () => {
  const workloads = (): string[] => readdirSync(join(dataDir, "runtime", "workloads"));
  const call = async (url: string, path: string, init: RequestInit = {}): Promise<Response> => {
    const { apiKey } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")) as { apiKey: string };
    return fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${apiKey}` } });
  };
  const file = "/main/sandboxes/box/filesystem/%2Froot%2Fkept.txt";
  const keptFile = async (url: string): Promise<unknown> => {
    const answer = await call(url, file);
    return answer.ok ? ((await answer.json()) as { content: unknown }).content : answer.status;
  };
  /** The events of the sandbox, once the last is of this type. */
  const lastEvent = async (url: string, type: string): Promise<string> => {
    let last: { type: string; message: string } | undefined;
    await eventually(async () => {
      const { events } = (await (await call(url, "/v0/sandboxes/box")).json()) as { events: (typeof last)[] };
      last = events.at(-1);
      return last?.type === type;
    });
    return last?.message ?? "";
  };

  const LOSSES = /^These end, and .* gone for good:\n {2}1 sandbox: main\/box\n$/;

  /** What a person at a terminal is told before `down --purge` gives up. */
  const refusedWith = async (answer: string | null): Promise<void> => {
    const told: string[] = [];
    const down = operatorCommands.find(({ name }) => name === "down");
    const context = {
      canAsk: true,
      ask: async () => answer,
      note: (line: string) => void told.push(`${line}\n`),
    } as Partial<Context> as Context;
    await assert.rejects(
      async () => down?.run?.({ args: [], options: { data: dataDir, purge: true }, context }),
      /nothing was stopped/,
    );
    assert.match(told.join(""), LOSSES);
  };

  test("ends them, also those that a plain stop has left; sandboxes go on with their files", async () => {
    const first = await startServer({ dataDir });
    const made = await berth("create", "sandbox", "box");
    assert.equal(made.code, 0, made.stderr);
    const written = await call(first.url, file, { method: "PUT", body: JSON.stringify({ content: "still here" }) });
    assert.equal(written.status, 200, await written.text());
    await refusedWith("n");
    await refusedWith(null);
    assert.equal(await keptFile(first.url), "still here", "whoever does not say yes has stopped nothing");
    const stopped = await first.stop();
    assert.match(stopped.stderr, /Berth has stopped\. 1 workload is still running\..*`npx berth down` ends/);
    const ended = await berth("down");
    assert.match(ended.stdout, /no server.*\nended 1 workload that had been left running\n$/);
    assert.match(ended.stderr, /^1 workload ends\. Files of sandboxes stay: .*\n {2}1 sandbox: main\/box\n$/);
    assert.equal(workloads().length, 1);

    const second = await startServer({ dataDir });
    assert.match(await lastEvent(second.url, "restarted"), /^Restarted after the platform had ended it .*files kept\./);
    assert.equal(await keptFile(second.url), "still here");
    assert.equal((await berth("down")).code, 0);
    const { code, stderr } = await second.ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /has stopped/, "nothing was left running");

    const unasked = await berth("down", "--purge");
    assert.equal(unasked.code, 2, "nobody can be asked");
    assert.match(unasked.stderr, /nothing was stopped.*--yes/s);
    assert.equal(workloads().length, 1);
    const purged = await berth("down", "--purge", "--yes");
    assert.match(purged.stdout, /no server.*\nremoved the files of 1 workload\n$/);
    assert.match(purged.stderr, LOSSES);
    assert.deepEqual(tracesOf(join(dataDir, "runtime")), []);
  });

  test("a sandbox goes on with its files after a restart of the machine", async () => {
    const first = await startServer({ dataDir });
    assert.equal((await berth("create", "sandbox", "box")).code, 0);
    const written = await call(first.url, file, { method: "PUT", body: JSON.stringify({ content: "still here" }) });
    assert.equal(written.status, 200, await written.text());
    await first.stop("SIGKILL");
    for (const id of workloads()) loseProcesses(join(dataDir, "runtime", "workloads", id));
    const second = await startServer({ dataDir });
    assert.match(await lastEvent(second.url, "restarted"), /^Restarted after the machine's restart, files kept\./);
    assert.equal(await keptFile(second.url), "still here");
    assert.equal((await berth("down", "--purge", "--yes")).code, 0);
    assert.deepEqual(tracesOf(join(dataDir, "runtime")), []);
  });

  test("takes away what a server that was killed had made on the machine, with and without workloads", async () => {
    for (const left of [false, true]) {
      const server = await startServer({ dataDir });
      assert.equal((await berth("create", "sandbox", `box-${left}`)).code, 0);
      if (!left) assert.equal((await berth("delete", "sandbox", `box-${left}`)).code, 0);
      if (!left) await eventually(() => workloads().length === 0);
      await server.stop("SIGKILL");
      assert.equal(readdirSync(join(dataDir, "run")).length, 1, "the note of the killed server");
      const ended = await berth("down", "--purge", "--yes");
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stdout, /no server/);
      assert.equal(/ended 1 workload/.test(ended.stdout), left, ended.stdout);
      assert.deepEqual(tracesOf(join(dataDir, "runtime")), []);
    }
  });

  test("leaves them with --keep", async () => {
    const server = await startServer({ dataDir });
    await berth("create", "sandbox", "box");
    assert.equal((await berth("down", "--keep")).code, 0);
    assert.equal((await server.ended).code, 0);
    assert.equal(workloads().length, 1);
    assert.equal((await berth("down", "--purge", "--yes")).code, 0);
  });
});

/** What a restart of the machine leaves of a workload: its folder, with the pids of another run. */
function loseProcesses(dir: string): void {
  const file = join(dir, "record.json");
  const record = JSON.parse(readFileSync(file, "utf8")) as WorkloadRecord;
  for (const { pid } of [record.watcher, record]) process.kill(pid, "SIGKILL");
  writeFileSync(file, JSON.stringify({ ...record, boot: "the run before" }));
}

describe("doctor", () => {
  test("looks at PostgreSQL and its clock", { skip: postgres?.skip }, async () => {
    const place = (await postgres?.fresh()) ?? assert.fail();
    const env = { BERTH_DATA: place.dataDir, DATABASE_URL: place.databaseUrl ?? "" };
    const before = checks(await runBerth(["doctor"], { env }));
    assert.match(before.database ?? "", /^ok PostgreSQL: the next start brings it up to date \(\d+ steps\)/);
    const server = await startServer({ dataDir: place.dataDir, databaseUrl: place.databaseUrl });
    const during = checks(await runBerth(["doctor"], { env }));
    assert.match(during.database ?? "", /^ok PostgreSQL: up to date/);
    assert.match(during.clock ?? "", /^ok /);
    assert.match((await runBerth(["down"], { env })).stdout, /^stopped /);
    assert.equal((await server.ended).code, 0);
    place.remove();
  });

  test("names each problem with what to do", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    chmodSync(dataDir, 0o755);
    writeFileSync(
      join(dataDir, "berth.sqlite"),
      "this is not a database at all, but long enough to look like one".repeat(20),
    );
    writeFileSync(join(dataDir, "credentials.json"), '{"url": "http://127.0.0.1:9", "workspace": "main"}', {
      mode: 0o600,
    });
    const ended = await berth("doctor", "--port", String(port));
    other.close();
    const found = checks(ended);
    assert.equal(ended.code, 1);
    assert.match(found["data folder"] ?? "", /^warning /);
    assert.match(found.database ?? "", /^problem .*not a database/);
    assert.match(found.port ?? "", /^problem .*in use by another program/);
    assert.match(found.credentials ?? "", /^warning .*holds no key/);
    assert.equal(ended.stdout.match(/next: /g)?.length, ended.stdout.match(/^(warning|problem)/gm)?.length);
  });

  test("changes nothing on a machine that has never run a server", async () => {
    const nowhere = join(dataDir, "not", "yet");
    const ended = await berth("doctor", "--data", nowhere, "--port", "0");
    assert.match(checks(ended)["data folder"] ?? "", /^ok .*will be made/);
    assert.match(checks(ended).database ?? "", /^ok .*will be made/);
    assert.deepEqual(readdirSync(dataDir), []);
  });

  test("tells a folder that cannot be written", {
    skip: process.getuid?.() === 0 && "root may write everywhere; run as a user",
  }, async () => {
    const locked = join(dataDir, "locked");
    mkdirSync(locked, { mode: 0o500 });
    const ended = await berth("doctor", "--data", join(locked, "data"));
    assert.match(checks(ended)["data folder"] ?? "", /^problem .*cannot be written/);
  });
});
