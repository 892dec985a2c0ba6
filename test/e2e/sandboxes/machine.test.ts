/** Sandboxes on this machine's own driver: real namespaces, processes and files, reached through the gateway. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { sizesMissing, usersMissing } from "../../local/machine.ts";
import type { TestPlatform } from "../../platform.ts";
import { projectArchive } from "../../project-archive.ts";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";

describe("a sandbox on this machine", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const { inside, exec, create, reaches } = suite;
  let platform: TestPlatform;
  before(async () => {
    await suite.start({ standby_after: "1", pool_size: "1" });
    platform = suite.platform();
  });
  after(() => suite.stop());

  test("runs commands with its environment and keeps files", async () => {
    const made = await create("desk", {
      runtime: {
        memory: 512,
        envs: [
          { name: "GREETING", value: 'it\'s $5 "ok"' },
          { name: "TOKEN", value: "hush", secret: true },
        ],
      },
    });
    assert.equal(made.state, "RUNNING");
    const said = await exec("desk", 'printf %s "$GREETING/$TOKEN/$BL_WORKSPACE/$BL_NAME"');
    assert.equal(said.body.stdout, 'it\'s $5 "ok"/hush/main/desk');
    assert.equal(said.body.exitCode, 0);
    await inside("desk", "PUT", "/filesystem/%2Ftmp%2Fnote.txt", { content: "hello" });
    assert.equal((await exec("desk", "cat /tmp/note.txt")).body.stdout, "hello");
    assert.equal((await inside("desk", "GET", "/filesystem/%2Ftmp%2Fnote.txt")).body.content, "hello");
    const awake = await exec(
      "desk",
      "cd /uk/libukp && test -p scale_to_zero_disable && echo +- > scale_to_zero_disable",
    );
    assert.equal(awake.body.exitCode, 0, "a program can keep it awake");
  });

  test("is not to be entered without credentials, or by another tenant's", async () => {
    assert.equal((await fetch(`${platform.url}/main/sandboxes/desk/process`)).status, 401);
    assert.equal(
      (await fetch(`${platform.url}/main/sandboxes/desk/process`, { headers: { authorization: "Bearer nobody" } }))
        .status,
      401,
    );
  });

  test("shared memory is half of its memory, and full of it the sandbox still answers", async () => {
    const size = async (name: string): Promise<string> => {
      const { body } = await exec(name, "df --output=size -m /dev/shm | tail -1");
      return body.stdout.trim();
    };
    assert.equal(await size("desk"), "256");
    await create("scratch", {
      runtime: { memory: 256, storageMb: 256 },
      volumes: [{ name: "disk", type: "ephemeral", sizeMb: 16, mountPath: "/data" }],
    });
    assert.equal(await size("scratch"), "128");
    const rootMb = Number((await exec("scratch", "df --output=size -m / | tail -1")).body.stdout);
    if (!sizesMissing) assert.ok(rootMb > 200 && rootMb <= 256, `the root has ${rootMb} MB`);
    const full = await exec("scratch", "touch /tmp/kept; head -c 300M /dev/zero > /dev/shm/x; ls /tmp/kept");
    assert.deepEqual([full.body.exitCode, full.body.stdout], [0, "/tmp/kept\n"]);
    assert.equal((await platform.call("DELETE", "/sandboxes/scratch")).status, 200);
  });

  test("another user than root has a home, a place to work, and root can become it", async (t) => {
    const { body } = await platform.call("GET", "/sandboxes/desk");
    if (body.isolation !== "mapped") return t.skip(usersMissing || "needs a machine that can map users: Linux 5.19");
    const envs = [
      { name: "BL_SANDBOX_USER_ENABLED", value: "true" },
      { name: "BL_SANDBOX_USER", value: "user" },
    ];
    await create("plain", { runtime: { memory: 512, envs } });
    const said = await exec("plain", "id -un; echo $HOME; touch ~/note ./note && echo both");
    assert.equal(said.body.stdout, "user\n/home/user\nboth\n", said.body.stderr);
    assert.equal((await platform.call("DELETE", "/sandboxes/plain")).status, 200);
    assert.equal((await exec("desk", "su user -c 'id -un'")).body.stdout, "user\n");
  });

  test("sleeps when idle and wakes for a request, with its processes", async () => {
    await inside("desk", "POST", "/process", { command: "sleep 1000", name: "sleeper" });
    await reaches("desk", ({ state }) => state === "STANDBY");
    const { body } = await inside("desk", "GET", "/process/sleeper");
    assert.equal(body.status, "running");
    assert.equal((await platform.call("GET", "/sandboxes/desk")).body.state, "RUNNING");
  });

  test("outbound rules hold for what runs, change while it runs, and refusals are told with their rule", async () => {
    const { body: made } = await platform.call("GET", "/sandboxes/desk");
    const refusalOf = async (host: string): Promise<string> => {
      const request = `exec 3<>/dev/tcp/127.0.0.1/988; printf 'CONNECT ${host}:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3`;
      const { body } = await exec("desk", `bash -c "${request}"`);
      return /Proxy-Error: (\w+)/.exec(body.stdout)?.[1] ?? body.stdout + body.stderr;
    };
    const rule = async (network: object): Promise<void> => {
      const put = await platform.call("PUT", "/sandboxes/desk", { body: { ...made, spec: { ...made.spec, network } } });
      assert.deepEqual([put.status, put.body.status], [200, "DEPLOYED"], JSON.stringify(put.body));
    };
    // No rule of a tenant leads to an address of the machine, so nothing leaves it here.
    const PLATFORM = "destination_forbidden";
    assert.equal(await refusalOf("127.0.0.1"), PLATFORM);
    await rule({ proxy: { allowedDomains: ["127.0.0.1"] } });
    assert.deepEqual([await refusalOf("10.9.9.9"), await refusalOf("127.0.0.1")], ["firewall_blocked", PLATFORM]);
    await reaches("desk", ({ events }) =>
      events.some(
        ({ type, message }) =>
          type === "outbound-refused" && message === "10.9.9.9:443 is refused by spec.network.proxy.allowedDomains.",
      ),
    );
    await rule({});
    assert.equal(await refusalOf("10.9.9.9"), PLATFORM);
    const spec = { type: "network", network: { proxy: { forbiddenDomains: ["bad.test"] } } };
    await platform.call("POST", "/policies", { body: { metadata: { name: "office" }, spec } });
    assert.equal(await refusalOf("bad.test"), "firewall_blocked");
    assert.equal((await platform.call("DELETE", "/policies/office")).status, 200);
    const metrics = await (await fetch(`${platform.url}/metrics`)).text();
    assert.match(metrics, /berth_outbound_refused_total\{reason="firewall_blocked"\} [2-9]/);
  });

  test("nobody finds the door shut while the daemon is exchanged", async () => {
    assert.equal((await inside("desk", "POST", "/upgrade", {})).status, 200);
    for (let n = 0; n < 50; n += 1) assert.equal((await inside("desk", "GET", "/process/sleeper")).status, 200);
    assert.equal((await inside("desk", "GET", "/health")).body.upgradeCount, 1);
  });

  test("a change that needs no other machine keeps it; one that does is in place when it is answered", async () => {
    const change = async (runtime: object, more: object = {}) => {
      const { body } = await platform.call("GET", "/sandboxes/desk");
      const spec = { ...body.spec, ...more, runtime: { ...body.spec.runtime, ...runtime } };
      return platform.call("PUT", "/sandboxes/desk", { body: { ...body, spec } });
    };
    const network = { proxy: { routing: [{ destinations: ["example.com"], secrets: { key: "hush" } }] } };
    const kept = await change({ ttl: "1h", snapshotEnabled: true }, { network });
    assert.deepEqual([kept.status, kept.body.status], [200, "DEPLOYED"]);
    assert.equal((await inside("desk", "GET", "/process/sleeper")).body.status, "running");
    for (const runtime of [{ memory: 256 }, { ports: [{ target: 3000 }] }]) {
      await inside("desk", "POST", "/process", { command: "sleep 1000", name: "sleeper" });
      const other = await change(runtime);
      assert.deepEqual([other.status, other.body.status], [200, "DEPLOYED"]);
      assert.equal((await inside("desk", "GET", "/process/sleeper")).status, 404, Object.keys(runtime).join());
    }
    assert.equal((await exec("desk", "echo $HOST:$PORT")).body.stdout, "0.0.0.0:3000\n", "its first declared port");
    await inside("desk", "PUT", "/filesystem/%2Ftmp%2Fnote.txt", { content: "hello" });
    await inside("desk", "POST", "/process", { command: "sleep 1000", name: "sleeper" });
  });

  test("a volume outlives its sandbox, a full one refuses to grow", async (t) => {
    await platform.call("POST", "/volumes", { body: { metadata: { name: "data" }, spec: { size: 16 } } });
    const volumes = [{ name: "data", mountPath: "/data" }];
    await create("first", { volumes });
    await exec("first", "echo kept > /data/file");
    await t.test("full", { skip: sizesMissing }, async () => {
      const full = await exec("first", "dd if=/dev/zero of=/data/big bs=1M count=64 2>&1; rm -f /data/big");
      assert.match(full.body.stdout + full.body.stderr, /No space left/);
    });
    await platform.call("DELETE", "/sandboxes/first");
    await create("second", { volumes });
    assert.equal((await exec("second", "cat /data/file")).body.stdout, "kept\n");
    await platform.call("DELETE", "/sandboxes/second");
  });

  test("a volume of a template starts with its files, whatever becomes of the template", async () => {
    const body = { metadata: { name: "seed" }, spec: { defaultSize: 16 } };
    const made = await platform.call("POST", "/volume_templates?upload=true", { body });
    const url = made.headers.get("x-service-upload-url") ?? "";
    assert.equal((await fetch(url, { method: "PUT", body: projectArchive({ "in/a.txt": "hello" }) })).status, 200);
    await platform.call("POST", "/volumes", { body: { metadata: { name: "seeded" }, spec: { template: "seed" } } });
    assert.equal((await platform.call("DELETE", "/volume_templates/seed")).status, 200);
    await create("sown", { volumes: [{ name: "seeded", mountPath: "/data" }] });
    assert.equal((await exec("sown", "cat /data/in/a.txt && echo more > /data/in/a.txt")).body.stdout, "hello");
    await platform.call("DELETE", "/sandboxes/sown");
    await create("sown", { volumes: [{ name: "seeded", mountPath: "/data" }] });
    assert.equal((await exec("sown", "cat /data/in/a.txt")).body.stdout, "more\n", "it is filled once");
    await platform.call("DELETE", "/sandboxes/sown");
  });

  test("a volume is copied while a program writes to it: snapshot, restore, clone, export, import", async () => {
    const post = (path: string, body: object) => platform.call("POST", path, { body });
    await post("/volumes", { metadata: { name: "busy" }, spec: { size: 16 } });
    await create("writer", { volumes: [{ name: "busy", mountPath: "/data" }] });
    // `b` follows `a`, so every moment has them equal or one apart.
    const counting =
      "i=0; while :; do i=$((i+1)); echo $i > /data/t; mv /data/t /data/a; echo $i > /data/t; mv /data/t /data/b; done";
    await inside("writer", "POST", "/process", { command: counting, name: "counter" });
    await exec("writer", "until [ -s /data/b ]; do :; done; echo kept > /data/kept");
    const written = Number((await exec("writer", "cat /data/b")).body.stdout);
    const taken = await post("/volumes/busy/snapshots", { name: "first" });
    assert.deepEqual([taken.body.status, taken.body.volumeName, taken.body.size], ["ready", "busy", 16]);
    assert.ok(taken.body.storedMb >= 1);
    await exec("writer", "echo later > /data/kept");
    const snapshotId = taken.body.id;
    const restored = await post("/volumes/busy/restore", { snapshotId, targetName: "restored" });
    const cloned = await post("/volumes/busy/clone", { targetName: "cloned" });
    assert.deepEqual([restored.status, cloned.status], [200, 200], JSON.stringify([restored.body, cloned.body]));
    assert.deepEqual([restored.body.spec.size, restored.body.state.attachedTo], [16, undefined]);
    assert.ok(restored.body.state.usedBytes > 0);
    assert.equal((await post("/volumes/busy/clone", { targetName: "cloned" })).status, 409);
    await create("reader", {
      volumes: [
        { name: "restored", mountPath: "/restored" },
        { name: "cloned", mountPath: "/cloned" },
      ],
    });
    const seen = await exec("reader", "cat /restored/a /restored/b /restored/kept /cloned/kept");
    const [a, b, before, after] = seen.body.stdout.split("\n");
    assert.ok(Number(a) >= written && [0, 1].includes(Number(a) - Number(b)), seen.body.stdout);
    assert.deepEqual([before, after], ["kept", "later"]);
    const headers = { "x-service-authorization": `Bearer ${platform.apiKey}` };
    const at = (path: string) => `${platform.url}/v0/volumes/${path}`;
    const sent = await fetch(at(`busy/export?snapshotId=${snapshotId}`), { method: "POST", headers });
    assert.deepEqual([sent.status, sent.headers.get("content-type")], [200, "application/x-tar"]);
    const tar = Buffer.from(await sent.arrayBuffer());
    const now = await fetch(at("busy/export"), { method: "POST", headers });
    assert.match(Buffer.from(await now.arrayBuffer()).toString("latin1"), /kept[\s\S]*later/);
    await post("/volumes", { metadata: { name: "imported" }, spec: { size: 16 } });
    const put = () => fetch(at("imported/import"), { method: "PUT", headers, body: tar });
    assert.equal((await put()).status, 200);
    assert.equal((await put()).status, 409, "a volume is filled once");
    await create("importer", { volumes: [{ name: "imported", mountPath: "/data" }] });
    assert.equal((await exec("importer", "cat /data/a /data/b /data/kept")).body.stdout, `${a}\n${b}\nkept\n`);
    for (const name of ["writer", "reader", "importer"]) await platform.call("DELETE", `/sandboxes/${name}`);
    assert.match((await platform.call("DELETE", "/volumes/busy")).body.message, /holds volumesnapshot/);
    assert.equal((await platform.call("DELETE", `/volumes/busy/snapshots/${snapshotId}`)).status, 204);
    assert.equal((await post("/volumes/busy/restore", { snapshotId, targetName: "late" })).status, 404);
    assert.equal((await platform.call("DELETE", "/volumes/busy")).status, 200);
  });

  test("previews lead to a port, private ones with a token", async () => {
    await inside("desk", "POST", "/process", {
      command:
        'cd /tmp && python3 -m http.server 4000 --bind 127.0.0.1 || node -e \'require("http").createServer((q,s)=>s.end("x")).listen(4000)\'',
      name: "web",
      waitForPorts: [],
    });
    await inside("desk", "POST", "/process", {
      command: "bash -c 'until (echo > /dev/tcp/127.0.0.1/4000) 2>/dev/null; do sleep 0.05; done'",
      timeout: 60,
      waitForCompletion: true,
    });
    const { body: open } = await platform.call("POST", "/sandboxes/desk/previews", {
      body: { metadata: { name: "open" }, spec: { port: 4000, public: true, responseHeaders: { "X-Seen": "yes" } } },
    });
    const seen = await fetch(`${open.spec.url}/note.txt`);
    assert.equal(seen.status, 200);
    assert.equal(seen.headers.get("x-seen"), "yes");
    assert.equal((await inside("desk", "GET", "/port/4000/note.txt")).body, "hello");
    assert.equal((await fetch(`${platform.url}/main/sandboxes/desk/port/4000/note.txt`)).status, 401);
    assert.equal((await inside("desk", "GET", "/port/4001/")).status, 502);
    const { body: closed } = await platform.call("POST", "/sandboxes/desk/previews", {
      body: { metadata: { name: "closed" }, spec: { port: 4000 } },
    });
    assert.equal((await fetch(closed.spec.url)).status, 401);
    const { body: token } = await platform.call("POST", "/sandboxes/desk/previews/closed/tokens", {
      body: { metadata: { name: "t" }, spec: {} },
    });
    assert.equal(
      (await fetch(closed.spec.url, { headers: { "x-service-preview-token": token.spec.token } })).status,
      200,
    );
  });

  test("the code interpreter streams what code says, and keeps its variables through sleep", async () => {
    await create("mind", { runtime: { image: "service/jupyter-server", memory: 512 } });
    const headers = { "x-service-authorization": `Bearer ${platform.apiKey}` };
    const execute = (code: string, port = 8888, signal?: AbortSignal): Promise<Response> =>
      fetch(`${platform.url}/main/sandboxes/mind/port/${port}/execute`, {
        ...{ method: "POST", headers, ...(signal ? { signal } : {}) },
        body: JSON.stringify({ code, language: "javascript" }),
      });
    const leaving = new AbortController();
    const answer = await execute("var kept = 6; console.log('begun'); while (true) {}", 8888, leaving.signal);
    let seen = "";
    for await (const chunk of answer.body ?? []) {
      seen += Buffer.from(chunk).toString();
      if (seen.includes("begun")) break;
    }
    leaving.abort();
    assert.match(await (await execute("kept * 7", 49999)).text(), /"text":"42"/);
    await reaches("mind", ({ state }) => state === "STANDBY");
    assert.match(await (await execute("kept")).text(), /"text":"6"/);
    assert.equal((await inside("mind", "GET", "/port/8889/contexts")).status, 502);
    assert.equal((await platform.call("DELETE", "/sandboxes/mind")).status, 200);
  });

  test("an unknown image is refused and nothing is stored", async () => {
    const refused = await platform.call("POST", "/sandboxes", {
      body: { metadata: { name: "never" }, spec: { runtime: { image: "no/such" } } },
    });
    assert.deepEqual([refused.status, refused.body.code], [400, "INVALID_IMAGE"]);
    const unbuilt = await platform.call("POST", "/sandboxes", {
      body: { metadata: { name: "never" }, spec: { runtime: { image: "sandbox/vite" } } },
    });
    assert.match(unbuilt.body.message, /`berth image catalogue vite` builds it/);
    assert.equal((await platform.call("GET", "/sandboxes/never")).status, 404);
  });

  test("a lifetime ends it to the second and the record says which clock", async () => {
    await create("mortal", { runtime: { memory: 256, ttl: "2s" } });
    await reaches("mortal", ({ status }) => status === "TERMINATED");
    const { body } = await platform.call("GET", "/sandboxes/mortal");
    assert.ok(body.events.some(({ message }: { message: string }) => message.includes("spec.runtime.ttl")));
  });

  test("survives a restart of the server, with its processes and files", async () => {
    await suite.restart({ standby_after: "60" });
    platform = suite.platform();
    assert.equal((await inside("desk", "GET", "/process/sleeper")).body.status, "running");
    assert.equal((await exec("desk", "cat /tmp/note.txt")).body.stdout, "hello");
  });

  test("a delete takes everything with it", async () => {
    const deleted = await platform.call("DELETE", "/sandboxes/desk");
    assert.equal(deleted.body.status, "DELETING");
    const gone = await inside("desk", "GET", "/process");
    assert.equal(gone.status, 404);
    assert.equal((await platform.call("GET", "/sandboxes/desk")).body.status, "TERMINATED");
  });
});
