import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { call } from "../../src/node/conformance/call.ts";
import { driverConformance } from "../../src/node/conformance/conformance.ts";
import { ownerOf } from "../../src/node/drivers/docker/docker-driver.ts";
import { PLATFORM_DOOR_PORT, type WorkloadSpec } from "../../src/node/workload.ts";
import { dockerSave, tar } from "../image-archive.ts";
import { run } from "../local/run.ts";
import { sparseLayers } from "./hostile-image.ts";
import { type Bench, DockerMachine, dockerCandidate, dockerMissing, openBench } from "./machine.ts";

const spec = (uid: string, more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  uid,
  name: "box",
  image: "base-image",
  env: {},
  limits: { memoryMb: 256, cpus: 1 },
  network: "closed",
  ...more,
});

/** The archive with a name of the sender's choice in its manifest, which is its second file. */
function named(archive: Buffer, name: string): Buffer {
  const [from, to] = ['[{"Config"', `[{"RepoTags":["${name}"],"Config"`];
  const start = archive.indexOf(from);
  const end = archive.indexOf("\0", start);
  const manifest = archive.toString("utf8", start, end).replace(from, to);
  const config = archive.subarray(0, start - 512);
  const rest = archive.subarray(start + Math.ceil((end - start) / 512) * 512);
  const entry = tar([{ path: "manifest.json", content: manifest }]);
  return Buffer.concat([config, entry.subarray(0, -1024), rest]);
}

if (dockerMissing) test("docker driver", { skip: dockerMissing }, () => {});
else
  suite("docker", () => {
    let bench: Bench;
    before(async () => {
      bench = await openBench();
    });
    after(() => bench.stop());

    driverConformance(
      "docker",
      dockerCandidate(() => bench),
    );

    test("an engine that cannot be used is refused with the reason", async (t) => {
      const machine = new DockerMachine(bench);
      t.after(() => machine.dispose());
      const refusals: [options: Parameters<DockerMachine["open"]>[0], reason: RegExp][] = [
        [
          { host: "unix:///nowhere/docker.sock" },
          /Docker does not answer at unix:\/\/\/nowhere\/docker\.sock \(ENOENT\)/,
        ],
        [{ host: "tcp://127.0.0.1:1" }, /Docker does not answer at tcp:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)/],
        [{ host: "ssh://somebody@somewhere" }, /cannot be used: it must be unix/],
        [{ runtime: "runsc" }, /it has no runtime 'runsc'\. It has .*runc/],
        [{ image: "nobody/knows:this" }, /Docker has no image nobody\/knows:this\. Run `docker pull/],
      ];
      for (const [options, reason] of refusals) await assert.rejects(machine.open(options), reason);
    });

    test("a workload has its loopback and the doors, and its name for the platform", async (t) => {
      const machine = new DockerMachine(bench);
      t.after(() => machine.dispose());
      const driver = await machine.open({
        onPlatform: (uid, socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${uid.length}\r\n\r\n${uid}`),
      });
      const made = await driver.create(spec("caller", { network: "outbound" }));
      const ask = `exec 3<>/dev/tcp/127.0.0.1/${PLATFORM_DOOR_PORT}; printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3; tail -n 1 <&3`;
      assert.equal((await run(made, `bash -c '${ask.replaceAll("'", `'\\''`)}'`)).output, "caller");
      assert.equal((await run(made, "ls /sys/class/net; echo $HTTPS_PROXY")).output, "lo\nhttp://127.0.0.1:988\n");
      assert.match((await run(made, "grep CapEff /proc/self/status")).output, /00000000a00405fb/);
      assert.equal((await run(made, "touch /run/berth/host/x")).exitCode, 1, "the folder of the doors is read-only");
    });

    test("an image that was loaded has one name, and no other name leads to it", async (t) => {
      const machine = new DockerMachine(bench);
      const dir = mkdtempSync(join(tmpdir(), "berth-load-"));
      t.after(async () => {
        await machine.dispose();
        rmSync(dir, { recursive: true });
      });
      const driver = await machine.open();
      const { images, snapshots } = driver.capabilities;
      const layer = tar([
        { path: "etc/passwd", content: "root:x:0:0::/root:\napp:x:1000:1000::/home/app:\n" },
        { path: "project/", type: "5", mode: 0o755 },
        { path: "project/hello.txt", content: "from the image" },
      ]);
      const config = { User: "app", Env: ["A=b"], WorkingDir: "/project" };
      const file = join(dir, "image.tar");
      writeFileSync(file, named(dockerSave([layer], config), "test/victim:latest"));
      const loaded = await images.load(file, "loaded/tool");
      assert.equal(await images.find("test/victim"), null, "a name in the archive means nothing");
      assert.equal(await images.find("127.0.0.1:5000/team/tool:1"), null, "a registry with a port");
      assert.deepEqual([loaded.name, loaded.env.A, loaded.workDir], ["loaded/tool:latest", "b", "/project"]);
      const made = await driver.create(spec("tool", { image: "loaded/tool" }));
      const { status, text } = await call(made, "/filesystem//project/hello.txt");
      assert.equal(status, 200, text);
      assert.match(text, /from the image/);

      await snapshots.take("tool", "kept");
      const names = (await Promise.all(["base-image", "loaded/tool"].map((name) => images.find(name)))).map(
        (each) => each?.digest ?? "",
      );
      const tags = (
        JSON.parse(await bench.engine.call("GET", "/images/json")) as { RepoTags: string[] | null }[]
      ).flatMap(({ RepoTags }) => RepoTags ?? []);
      const owned = tags.filter((tag) => /^berth-[0-9a-f]{8}\//.test(tag));
      assert.equal(owned.length, 2, String(tags));
      for (const name of [
        ...names,
        ...names.map((each) => each.replace("sha256:", "").slice(0, 12)),
        ...owned,
        ...owned.map((tag) => `docker.io/${tag}`),
      ])
        assert.equal(await images.find(name), null, name);
      assert.equal(await images.remove("base-image"), false);
      await driver.destroy("tool");
      await snapshots.remove("kept");
      assert.equal(await images.remove("loaded/tool"), true);
      assert.equal(await images.find("loaded/tool"), null);
    });

    test("an image cannot pass for the node's own, and its volumes go with the workload", async (t) => {
      const machine = new DockerMachine(bench);
      const dir = mkdtempSync(join(tmpdir(), "berth-load-"));
      t.after(async () => {
        await machine.dispose();
        rmSync(dir, { recursive: true });
      });
      const driver = await machine.open();
      const { images, snapshots } = driver.capabilities;
      const file = join(dir, "image.tar");
      const load = (layer: Buffer, config: object) => {
        writeFileSync(file, dockerSave([layer], config));
        return images.load(file, "loaded/claims");
      };
      const volumes = await bench.engine.volumes();
      for (const role of ["snapshot", "base", "helper"]) {
        const owner = ownerOf("berth", machine.dataDir);
        const labels = { "berth.node": owner, "berth.role": role, "berth.snapshot-of": "{}", mine: "yes" };
        await load(tar([{ path: "a", content: role }]), { Labels: labels, Volumes: { "/data": {}, "/more": {} } });
        const listed = (await images.list()).map(({ name }) => name);
        assert.ok(listed.includes("loaded/claims:latest"), `${role}: ${listed}`);
      }
      await driver.create(spec("claims", { image: "loaded/claims" }));
      assert.equal((await bench.engine.volumes()).length, volumes.length + 2);
      await snapshots.take("claims", "of-claims");
      assert.deepEqual(
        (await snapshots.list()).map(({ id }) => id),
        ["of-claims"],
      );
      assert.ok(!(await images.list()).some(({ name }) => /snapshot|base-image:v/.test(name)));
      assert.equal(await images.find("snapshot:of-claims"), null);
      await driver.destroy("claims");
      assert.deepEqual(await bench.engine.volumes(), volumes);
      await snapshots.remove("of-claims");
      assert.equal(await images.remove("loaded/claims"), true);

      const accounts = tar([{ path: "etc/passwd", content: Buffer.alloc(2 * 1024 * 1024, "app:x:1:1::/:\n") }]);
      await load(accounts, { User: "app" });
      await assert.rejects(driver.create(spec("claims", { image: "loaded/claims" })), { code: "bad_request" });
      assert.equal(await images.remove("loaded/claims"), true);
    });

    test("a layer that grows in the engine is refused before the engine has it", async (t) => {
      const machine = new DockerMachine(bench);
      const dir = mkdtempSync(join(tmpdir(), "berth-load-"));
      t.after(async () => {
        await machine.dispose();
        rmSync(dir, { recursive: true });
      });
      const { images } = (await machine.open()).capabilities;
      const file = join(dir, "image.tar");
      const kept = async (): Promise<string[]> =>
        (JSON.parse(await bench.engine.call("GET", "/images/json?all=1")) as { Id: string }[])
          .map(({ Id }) => Id)
          .sort();
      const before = await kept();
      for (const [what, layer] of Object.entries(sparseLayers)) {
        writeFileSync(file, dockerSave([layer]));
        await assert.rejects(images.load(file, "loaded/grows"), { message: /stored with holes|with content/ }, what);
        assert.deepEqual(await kept(), before, what);
      }
    });

    test("what a killed server left half made is gone after the next start, and a folder of a drive is refused", async (t) => {
      const machine = new DockerMachine(bench);
      t.after(() => machine.dispose());
      const first = await machine.open();
      await first.create(spec("half"));
      await first.stop("keep");
      const workloads = join(machine.dataDir, "workloads");
      for (const id of readdirSync(workloads)) rmSync(join(workloads, id, "ready"));
      const next = await machine.open();
      assert.deepEqual(await next.list(), []);
      assert.deepEqual(readdirSync(workloads), []);
      await next.capabilities.drives.create("shared");
      const mounts = [{ source: { drive: "shared", path: "/link" }, path: "/mnt/x" }];
      await assert.rejects(next.create(spec("part", { mounts })), { code: "unprocessable" });
      assert.equal(await next.observe("part"), null);
      await next.capabilities.drives.destroy("shared");
    });
  });
