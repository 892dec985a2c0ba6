/**
 * Run by disk.test.ts in a mount namespace of its own: a server whose data folder is a small file system, which
 * somebody fills, as a workload could.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { RESERVE_SLICES, slicesLeft } from "../../src/lib/disk/disk-reserve.ts";
import { runBerth, type ServerProcess, startServer } from "../berth-process.ts";

const KEY = "disk-test-key-0123456789";
const [, , what = "bytes", folder = ""] = process.argv;
execFileSync("mount", ["-t", "tmpfs", "-o", "size=96m,nr_inodes=6000", "tmpfs", folder]);
const dataDir = join(folder, "data");
const filler = join(folder, "tenant");
mkdirSync(dataDir, { mode: 0o700 });
mkdirSync(filler);

const servers = new Set<ServerProcess>();
process.once("exit", () => {
  for (const { child } of servers) child.kill("SIGKILL");
});
const args = ["--disk-free-min", "24", "--disk-reserve", "8", "--pool-size", "0"];
const start = async (): Promise<ServerProcess> => {
  const server = await startServer({ dataDir, args, env: { BERTH_API_KEY: KEY } });
  servers.add(server);
  server.ended.then(
    () => servers.delete(server),
    () => {},
  );
  return server;
};

async function call(server: ServerProcess, method: string, path: string, body?: unknown) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith("{") ? JSON.parse(text) : null };
}

const TOLD = '"msg":"new work is refused';
const policy = (name: string) => ({ metadata: { name }, spec: { type: "maxToken", maxTokens: { total: 10 } } });

/** Takes everything that is left. */
function fillUp(): void {
  try {
    if (what === "inodes") for (let each = 0; ; each++) writeFileSync(join(filler, `${Date.now()}-${each}`), "");
    const file = openSync(join(filler, `bytes-${Date.now()}`), "w");
    try {
      const chunk = Buffer.alloc(64 * 1024, 7);
      for (let size = chunk.length; size > 256; ) {
        try {
          writeSync(file, chunk, 0, size);
        } catch {
          size >>= 1;
        }
      }
    } finally {
      closeSync(file);
    }
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  }
}

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (!(await check())) {
    assert.ok(Date.now() < deadline, "waited in vain");
    await delay(50);
  }
}

let server = await start();
await diskIsFilled();
await server.stop();

/** By something beside the server, which takes whatever is free again and again. */
async function diskIsFilled(): Promise<void> {
  for (const name of ["one", "two"])
    assert.equal((await call(server, "POST", "/v0/policies", policy(name))).status, 200);
  await until(() => slicesLeft(dataDir) === RESERVE_SLICES);

  // A copy that the starting server gives up, because there is no room for it, frees its part again.
  await until(async () => {
    fillUp();
    return (await call(server, "GET", "/readyz")).body.status === "degraded";
  });
  await newWorkIsRefused();
  assert.equal((await call(server, "GET", "/v0/policies/one")).status, 200, "reading goes on");
  // Many of them, so that the database's log has to grow.
  for (let each = 0; each < 30; each++) {
    const key = await call(server, "POST", "/v0/api_keys", { name: `key-${each}` });
    assert.equal(key.status, 200, `what is not new work is written down: ${key.text}`);
    if (each % 10 === 0) fillUp();
  }
  assert.equal((await call(server, "DELETE", "/v0/policies/one")).status, 200);
  if (what === "bytes") assert.ok(slicesLeft(dataDir) < RESERVE_SLICES, "a part of the reserve was given up");

  // The server is killed, and what is free is taken: the next start finds room, and so does `down`.
  await server.stop("SIGKILL");
  fillUp();
  server = await start();
  assert.equal((await call(server, "GET", "/v0/policies/one")).status, 404, "the delete was kept");
  assert.equal((await call(server, "DELETE", "/v0/policies/two")).status, 200);
  fillUp();
  const down = await runBerth(["down", "--data", dataDir]);
  assert.equal(down.code, 0, down.stderr);
  assert.match(down.stdout, /stopped/);
  await server.ended;

  // The files go: everything is as before, and the reserve is made again.
  server = await start();
  rmSync(filler, { recursive: true });
  assert.equal((await call(server, "POST", "/v0/policies", policy("three"))).status, 200);
  assert.deepEqual((await call(server, "GET", "/readyz")).body, { status: "ready" });
  await until(() => slicesLeft(dataDir) === RESERVE_SLICES);
}

async function newWorkIsRefused(): Promise<void> {
  const refused = await call(server, "POST", "/v0/drives", { metadata: { name: "four" }, spec: {} });
  assert.equal(refused.status, 507, refused.text);
  assert.equal(refused.body.error, "insufficient_storage");
  assert.match(refused.body.message, /New work is refused.*nearly full/s);
  const ready = await call(server, "GET", "/readyz");
  assert.deepEqual([ready.status, ready.body.status], [200, "degraded"]);
  assert.match(ready.body.reason, /nearly full/);
  await until(() => server.stdout().includes(TOLD));
  assert.equal(server.stdout().split(TOLD).length - 1, 1, "one line, not one for each refusal");
}
