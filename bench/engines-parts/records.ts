/** Three servers on one PostgreSQL with 1,000 sandboxes: one of them starts, looks at all of its own, and resyncs. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Driver } from "../../src/node/driver.ts";
import { FakeMachine, fakeDriver } from "../../test/fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../../test/platform.ts";
import { startPrivatePostgres } from "../../test/postgres.ts";
import { load, table } from "../measure.ts";

const NODES = ["one", "two", "three"] as const;
const RECORDS = 1000;
const MAKERS = 16;
const RESYNC_MS = 2000;
const RESYNC_PAGE = 500;

interface Server {
  machine: FakeMachine;
  /** Workloads that the server has not looked at since it began to count. */
  unseen: Set<string>;
  /** Called when the server has looked at all. */
  onSeen: () => void;
  start(): Promise<TestPlatform>;
}

export async function measureRecords(): Promise<void> {
  const postgres = await startPrivatePostgres();
  if ("reason" in postgres) return console.log(`\nRecords of three nodes: not measured, ${postgres.reason}`);
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  const running: TestPlatform[] = [];
  const servers = NODES.map((name) => serverOf(name, join(dir, name), postgres.url));
  try {
    for (const { start } of servers) running.push(await start());
    let left = RECORDS;
    const make = async (): Promise<void> => {
      while (left > 0) {
        const at = running[left-- % NODES.length];
        const made = await at?.call("POST", "/sandboxes", { body: { metadata: {}, spec: {} } });
        if (made?.status !== 200) throw new Error(JSON.stringify(made?.body));
      }
    };
    await Promise.all(Array.from({ length: MAKERS }, make));
    const [first] = servers;
    if (!first) return;
    await running.shift()?.stop();
    for (const uid of first.machine.workloads.keys()) first.unseen.add(uid);
    const own = first.unseen.size;
    const seen = new Promise<void>((resolve) => {
      first.onSeen = resolve;
    });
    const begun = performance.now();
    const again = await first.start();
    running.push(again);
    const startMs = performance.now() - begun;
    await seen;
    const seenMs = performance.now() - begun;
    const nodes = (await again.call<{ id: string; isSelf: boolean }[]>("GET", "/nodes")).body;
    const self = nodes.find(({ isSelf }) => isSelf)?.id ?? "";
    const resync = await load(1, RESYNC_MS, async () => {
      await again.app.store.resources.listUnsettledAcrossWorkspaces(["sandbox"], RESYNC_PAGE, self);
    });
    table(`A server starts again: ${RECORDS} sandboxes over ${NODES.length} nodes, ${own} of them its own`, [
      { step: "the server answers", ms: startMs },
      { step: "every workload of its own is observed", ms: seenMs },
      { step: "a resync looks for records that are not settled (median)", ms: resync.p50Ms },
    ]);
  } finally {
    for (const platform of running) await platform.stop();
    for (const { machine } of servers) await machine.dispose();
    await postgres.stop();
    rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  }
}

function serverOf(name: string, dataDir: string, databaseUrl: string): Server {
  const machine = new FakeMachine({ images: ["service/base-image:latest"] });
  const plain = fakeDriver(machine);
  const driver: Driver = {
    ...plain,
    observe: async (uid) => {
      const found = await plain.observe(uid);
      if (server.unseen.delete(uid) && server.unseen.size === 0) server.onSeen();
      return found;
    },
  };
  const config = { secret_key: "one key for all servers of one database", node_name: name, node_full_at: "100" };
  const server: Server = {
    ...{ machine, unseen: new Set(), onSeen: () => {} },
    start: () => startTestPlatform({ databaseUrl, config, driver, dataDir }),
  };
  return server;
}
