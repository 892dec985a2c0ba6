/** Resizing on this machine's own driver: what control groups hold, what is refused, and a server that is killed meanwhile. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { WorkloadRecord } from "../../../src/node/drivers/local/workload/record.ts";
import { holdsLimits } from "../../local/machine.ts";
import { caller, TEST_KEY } from "../../platform.ts";
import { machineSkip } from "../../sandbox-suite.ts";
import { type ServerProcess, startServer } from "../../server-process.ts";

const MB = 1024 * 1024;
const skip = machineSkip || (holdsLimits() ? false : "needs control groups that limit memory and cpu; run it as root");

describe("a sandbox on this machine is resized", { skip }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-resize-"));
  let server: ServerProcess;
  const call = (...asked: Parameters<ReturnType<typeof caller>>) => caller(server.url)(...asked);
  const resize = (body: object) => call("POST", "/sandboxes/box/resize", { body });
  const exec = async (command: string): Promise<string> => {
    const answer = await fetch(`${server.url}/main/sandboxes/box/process`, {
      method: "POST",
      headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ command, waitForCompletion: true, timeout: 60 }),
    });
    return ((await answer.json()) as { stdout: string }).stdout;
  };
  before(async () => {
    server = await startServer({ dataDir });
    const body = { metadata: { name: "box" }, spec: { runtime: { memory: 512 } } };
    const made = await call("POST", "/sandboxes", { body });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  });
  after(async () => {
    await call("DELETE", "/sandboxes/box");
    await server.kill("SIGTERM");
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  });

  /** Megabytes and processors, as the kernel has them. */
  function held(): { memory: number; cpus: number } {
    const file = readdirSync(dataDir, { recursive: true, encoding: "utf8" }).find((path) =>
      /workloads\/[^/]+\/record\.json$/.test(path),
    );
    const record = JSON.parse(readFileSync(join(dataDir, file ?? ""), "utf8")) as WorkloadRecord;
    const { unified, memory, cpu } = record.cgroup.paths;
    const read = (path: string): string => readFileSync(path, "utf8").trim();
    if (record.cgroup.version === 2) {
      const [quota, period] = read(`${unified}/cpu.max`).split(" ");
      return { memory: Number(read(`${unified}/memory.max`)) / MB, cpus: Number(quota) / Number(period) };
    }
    return {
      memory: Number(read(`${memory}/memory.limit_in_bytes`)) / MB,
      cpus: Number(read(`${cpu}/cpu.cfs_quota_us`)) / Number(read(`${cpu}/cpu.cfs_period_us`)),
    };
  }

  test("the kernel holds the new limits, less than is used is refused, and pages of files make room", async () => {
    const shm = "df --output=size -m /dev/shm | tail -1";
    assert.equal((await exec(`head -c 200M /dev/zero > /dev/shm/kept; ${shm}`)).trim(), "256");
    assert.deepEqual((await resize({ memory: 768, cpus: 1 })).body, { name: "box", memory: 768, cpus: 1 });
    assert.deepEqual(held(), { memory: 768, cpus: 1 });
    assert.equal((await exec(shm)).trim(), "384");
    const refused = await resize({ memory: 128 });
    assert.equal(refused.status, 409);
    const used = Number(/(\d+) MB of memory are in use, and 128 MB/.exec(refused.body.message)?.[1]);
    assert.ok(used >= 200 && used < 512, refused.body.message);
    assert.deepEqual(held(), { memory: 768, cpus: 1 }, "nothing changed");
    await exec("head -c 300M /dev/zero > /tmp/pages; cat /tmp/pages > /dev/null");
    assert.equal((await resize({ memory: 448, cpus: 0.5 })).status, 200);
    assert.deepEqual(held(), { memory: 448, cpus: 0.5 });
    assert.equal((await exec("stat -c %s /dev/shm/kept")).trim(), String(200 * MB), "it was not started anew");
    await exec("rm /dev/shm/kept /tmp/pages");
  });

  test("after a kill -9 in the middle the record says what the machine holds", async () => {
    for (let round = 0; round < 2; round += 1) {
      let done = 0;
      const first = Promise.withResolvers<void>();
      const resizing = (async () => {
        for (let n = 0; ; n += 1) {
          const answer = await resize({ memory: n % 2 ? 640 : 384 }).catch(() => null);
          if (!answer) return;
          assert.equal(answer.status, 200, JSON.stringify(answer.body));
          done += 1;
          first.resolve();
        }
      })();
      // The next one is under way from here on.
      await first.promise;
      await server.kill("SIGKILL");
      await resizing;
      assert.ok(done > 0);
      server = await startServer({ dataDir });
      // Refused while the server still works on what was left: once it is done, nothing is open any more.
      while ((await resize({ cpus: 0.75 })).status !== 200);
      const { body } = await call("GET", "/sandboxes/box");
      const { memory, cpus } = body.spec.runtime;
      assert.deepEqual(held(), { memory, cpus });
    }
  });
});
