/** A drive is on one server, and sandboxes of any server mount it. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Cluster } from "./cluster.ts";
import type { Member } from "./member.ts";
import { exec, makeSandbox, run, until } from "./use.ts";

export function sharedDrives(get: () => Cluster<"a" | "b">): void {
  test("two sandboxes on two servers see each other's files in a drive, with its permissions", async () => {
    const { a, b } = get().members;
    const spec = { permissions: [{ labels: { may: "read" }, mode: "read", path: "/out" }, { labels: {} }] };
    const made = await a.call("POST", "/drives", { body: { metadata: { name: "both" }, spec } });
    assert.equal(made.body.metadata.node, "a", JSON.stringify(made.body));
    for (const [at, name] of [
      [a, "near"],
      [b, "far"],
    ] as const) {
      assert.equal((await makeSandbox(at, name)).metadata.node, at.name);
      await mounted(at, name, { driveName: "both", mountPath: "/both" });
    }
    await run(b, "far", "mkdir -p /both/out && echo from far > /both/out/file && chown 1000:1000 /both/out/file");
    assert.equal(await run(a, "near", "cat /both/out/file; stat -c %u:%g /both/out/file"), "from far\n1000:1000");
    await run(a, "near", "echo from near > /both/next && mv /both/next /both/out/file");
    assert.equal(await run(b, "far", "cat /both/out/file; stat -c %u /both/out/file"), "from near\n0");
    await run(b, "far", "dd if=/dev/urandom of=/both/big bs=1M count=10 status=none conv=fsync");
    const sum = "sha256sum < /both/big";
    assert.equal(await run(a, "near", sum), await run(b, "far", sum));
    await run(a, "near", "rm /both/big");
    assert.equal(await run(b, "far", "ls /both"), "out");

    const reader = await b.call("POST", "/sandboxes", {
      body: { metadata: { name: "reader", labels: { may: "read" } }, spec: { runtime: { memory: 256 } } },
    });
    assert.equal(reader.body.metadata.node, "b");
    assert.match(await refusal(b, "reader", { driveName: "both", mountPath: "/all" }), /may use \/out/);
    await mounted(b, "reader", { driveName: "both", mountPath: "/out", drivePath: "/out" });
    assert.equal(
      await run(b, "reader", "cat /out/file; (echo x > /out/new) 2> /dev/null || echo refused"),
      "from near\nrefused",
    );
    assert.equal((await b.call("DELETE", "/sandboxes/reader")).status, 200);
  });

  test("the process of a mount, the server of the sandbox and that of the drive are killed: files go on", async () => {
    const { a, b } = get().members;
    const [pid] = await until(
      () => servingPids(b),
      (pids) => pids.length === 1,
    );
    process.kill(pid ?? assert.fail("nothing serves the mount"), "SIGKILL");
    assert.equal(await run(b, "far", "cat /both/out/file"), "from near");
    await run(b, "far", "(while sleep 0.1; do echo alive >> /both/log; done) > /dev/null 2>&1 &");
    await b.kill();
    await b.start();
    await grows(get().members);
    await a.kill();
    await a.start();
    await grows(get().members);
    assert.equal(await run(b, "far", "cat /both/out/file"), "from near");
  });

  test("a mount that lost its holder refuses at once, and is mounted again; what no sandbox mounts is unmounted", async () => {
    const { a, b } = get().members;
    const [pid] = servingPids(b);
    process.kill(parentOf(pid ?? assert.fail("nothing serves the mount")), "SIGKILL");
    await until(
      () => exec(b, "far", "cat /both/out/file"),
      ({ said }) => /not connected/.test(said),
    );
    await unmounted(b, "far", "both");
    await mounted(b, "far", { driveName: "both", mountPath: "/both" });
    assert.equal(await run(b, "far", "cat /both/out/file"), "from near");
    await unmounted(b, "far", "both");
    assert.equal(await run(b, "far", "grep -c ' /both ' /proc/self/mountinfo || true"), "0");
    await until(
      () => servingPids(b),
      (pids) => pids.length === 0,
    );
    for (const name of ["near", "far"]) assert.equal((await a.call("DELETE", `/sandboxes/${name}`)).status, 200);
    await until(
      async () => (await a.call("DELETE", "/drives/both")).status,
      (status) => status === 200,
    );
  });
}

async function mounted(at: Member, name: string, body: object): Promise<void> {
  const answer = await post(at, name, body);
  assert.equal(answer.status, 200, await answer.text());
}

async function unmounted(at: Member, name: string, path: string): Promise<void> {
  const answer = await at.ask(`sandboxes/${name}/drives/mount/${path}`, { method: "DELETE" });
  assert.equal(answer.status, 200, await answer.text());
}

const refusal = async (at: Member, name: string, body: object): Promise<string> => (await post(at, name, body)).text();

const post = (at: Member, name: string, body: object): Promise<Response> =>
  at.ask(`sandboxes/${name}/drives/mount`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** The program in `far` goes on to write, which its own server and the one of the drive see. Asking keeps it awake. */
async function grows({ a, b }: Record<"a" | "b", Member>): Promise<void> {
  const lines = async (): Promise<number> => Number((await exec(b, "far", "wc -l < /both/log")).said);
  const before = await until(lines, (count) => count > 0);
  const later = await until(lines, (count) => count > before);
  assert.ok(Number(await run(a, "near", "wc -l < /both/log")) >= later);
}

/** The fourth word of the line; the second one, the name of the program, has no spaces here. */
const parentOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[3]);

/** The processes that serve mounts on the machine of one server. */
const servingPids = ({ dataDir }: Member): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const words = readFileSync(`/proc/${name}/cmdline`, "utf8");
        return words.includes("drive-mount.js") && words.includes(join(dataDir, "drives.sock"));
      } catch {
        return false; // it has ended
      }
    })
    .map(Number);
