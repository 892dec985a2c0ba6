/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the shell */
/** Images built from Dockerfiles by the API and the command line, on this machine's own driver. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { LogPages } from "../answers/body.ts";
import { runBerth } from "../berth-process.ts";
import { debianEnv, unpackedDebian } from "../debian-packages.ts";
import { type Entry, tar } from "../image-archive.ts";
import type { TestPlatform } from "../platform.ts";
import { addImage, digestOf, type FakeRegistry, startFakeRegistry } from "../registry/fake-registry.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";

const program = (name: string): Entry => ({ path: `bin/${name}`, content: readFileSync(`/bin/${name}`), mode: 0o755 });
const skopeo = unpackedDebian("skopeo", ["skopeo", "libgpgme11", "libassuan0", "libgpg-error0"]);
const lines = (...all: string[]): string => `${all.join("\n")}\n`;

describe("an image from a Dockerfile", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const folder = mkdtempSync(join(tmpdir(), "berth-image-build-"));
  let registry: FakeRegistry;
  before(async () => {
    registry = await startFakeRegistry();
    await suite.start({ standby_after: "60", registries: registry.host });
  });
  after(async () => {
    await suite.stop();
    await registry[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const environment = (): Record<string, string> => ({
    BERTH_URL: suite.platform().url,
    BERTH_API_KEY: suite.platform().apiKey,
    BERTH_WORKSPACE: "main",
  });
  const call: TestPlatform["call"] = (...args) => suite.platform().call(...args);
  const write = (files: Record<string, string>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, dirname(path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  /** The registry serves the manifest that the record names, with its parts, and the sandbox runs the same. */
  const served = async (repository: string, tag: string, digest: string, sandbox: string): Promise<void> => {
    const headers = { authorization: `Bearer ${suite.platform().apiKey}` };
    const get = async (path: string): Promise<Buffer> => {
      const answer = await fetch(`${suite.platform().url}/v2/${repository}/${path}`, { headers });
      assert.equal(answer.status, 200, path);
      return Buffer.from(await answer.arrayBuffer());
    };
    const manifest = await get(`manifests/${tag}`);
    assert.equal(digestOf(manifest), digest);
    const { config, layers } = JSON.parse(manifest.toString("utf8"));
    const { rootfs } = JSON.parse((await get(`blobs/${config.digest}`)).toString("utf8"));
    assert.equal(rootfs.diff_ids.length, layers.length);
    for (const each of [config, ...layers]) {
      const blob = await get(`blobs/${each.digest}`);
      assert.deepEqual([digestOf(blob), blob.length], [each.digest, each.size]);
    }
    const strange = await fetch(`${suite.platform().url}/v2/main/nothing/blobs/${config.digest}`, { headers });
    assert.equal(strange.status, 404, "a digest alone gives nobody the blob");
    const { body } = await call("GET", `/sandboxes/${sandbox}`);
    assert.ok(JSON.stringify(body).includes(digest), "the record of the sandbox names what runs");
    if (skopeo === null) return;
    const home = mkdtempSync(join(tmpdir(), "berth-skopeo-"));
    try {
      const env = { ...debianEnv(skopeo), HOME: home, XDG_RUNTIME_DIR: home };
      const from = `docker://${new URL(suite.platform().url).host}/${repository}:${tag}`;
      const credentials = ["--src-tls-verify=false", "--src-creds", `any:${suite.platform().apiKey}`];
      const copy = ["--insecure-policy", "copy", "-q", "--preserve-digests", ...credentials, from, `dir:${home}/copy`];
      await promisify(execFile)("skopeo", copy, { env });
      assert.equal(digestOf(readFileSync(join(home, "copy/manifest.json"))), digest);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  };
  /** Asks for a build and sends its archive. */
  const build = async (body: object, files: Entry[]): Promise<void> => {
    const asked = await call("POST", "/images?upload=true", { body });
    assert.equal(asked.status, 200, JSON.stringify(asked.body));
    assert.equal((await call("GET", "/images/_/hostile")).body.metadata.status, "UPLOADING");
    const sent = await fetch(asked.headers.get("x-service-upload-url") ?? "", { method: "PUT", body: tar(files) });
    assert.equal(sent.status, 200, await sent.text());
  };

  test("`berth image build` shows the build, and a sandbox runs what it made on a base of a registry", async () => {
    assert.equal((await call("GET", "/features/image-builds")).body.enabled, true);
    // A root as Debian has it: folders of the kernel, and /lib is a link.
    const tree: Entry[] = [
      { path: "tree/proc/none", content: "" },
      { path: "tree/lib", type: "2", link: "usr/lib" },
    ];
    const layer = tar([program("sh"), program("cat"), { path: "etc/base", content: "base\n" }, ...tree]);
    addImage(registry, "acme/base:1", {
      layers: [layer],
      config: { Env: ["PATH=/bin", "FROM_BASE=yes"], Cmd: ["/bin/cat"] },
    });
    write({
      "tool/Dockerfile": lines(
        "ARG VERSION=0",
        `FROM ${registry.host}/acme/base:$VERSION AS built`,
        "COPY greeting.txt /data/",
        "RUN --mount=type=secret,id=word read -r g < /data/greeting.txt; read -r w < /run/secrets/word; echo $g ${#w} $FROM_BASE > /made; echo told in the log",
        "FROM scratch",
        "COPY --from=built / /",
        "COPY --from=built /tree /",
        "ENV PATH=/bin",
        "WORKDIR /work",
      ),
      "tool/greeting.txt": "hello\n",
      "tool/left-out.txt": "no",
      "tool/.dockerignore": "left-out.txt\n",
      word: "hidden-word",
    });
    const secret = `id=word,src=${join(folder, "word")}`;
    const words = [
      "image",
      "build",
      join(folder, "tool"),
      "-t",
      "tool:1",
      "--build-arg",
      "VERSION=1",
      "--secret",
      secret,
    ];
    const { code, stderr } = await runBerth(words, { env: environment() });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Step 1: COPY greeting\.txt \/data\/[\s\S]*told in the log[\s\S]*COPY --from=built/);
    const image = (await call("GET", "/images/sandbox/tool")).body;
    assert.deepEqual(
      [image.metadata.status, image.spec.tags[0].status, image.spec.tags[0].name],
      ["DEPLOYED", "DEPLOYED", "1"],
    );
    assert.match(image.spec.tags[0].digest, /^sha256:/);
    await suite.create("tool", { runtime: { memory: 256, image: "tool:1" } });
    assert.equal(
      (await suite.exec("tool", "cat /made /etc/base; pwd; [ -h /lib ] && echo link")).body.stdout,
      "hello 11 yes\nbase\n/work\nlink\n",
    );
    assert.doesNotMatch(JSON.stringify(image), /hidden-word/);
    const other = await call("GET", "/images", { workspace: "main" });
    assert.equal(other.status, 200);
    await served("main/tool", "1", image.spec.tags[0].digest, "tool");
    // The same again uses every step again.
    const again = await runBerth(words, { env: environment() });
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /Step 2: RUN .*\(CACHED\)/);
  });

  test("a build that fails says where and why; a hostile archive is refused; a delete ends a build", async () => {
    const body = { name: "hostile", resourceType: "sandbox" };
    const ended = async (status: string): Promise<string> => {
      await eventually(async () => (await call("GET", "/images/_/hostile")).body.metadata.status === status);
      return (await call("GET", "/images/_/hostile")).body.metadata.events.at(-1).message;
    };
    await build(body, [{ path: "Dockerfile", content: "FROM service/base-image\nRUN echo said >&2; exit 4\n" }]);
    assert.match(await ended("FAILED"), /line 2: RUN .*exit code 4\.\nsaid/);
    await build(body, [
      { path: "Dockerfile", content: "FROM service/base-image\n" },
      { path: "link", type: "2", link: "/etc/shadow" },
    ]);
    assert.match(await ended("FAILED"), /'link' is a symlink/);
    await build(body, [{ path: "x", content: "" }]);
    assert.match(await ended("FAILED"), /no Dockerfile in the archive/);
    await build({ ...body, build: { target: "none" } }, [{ path: "Dockerfile", content: "FROM scratch\n" }]);
    assert.match(await ended("FAILED"), /no stage 'none'/);
    await build(body, [{ path: "Dockerfile", content: "FROM service/base-image\nRUN echo begun; sleep 600\n" }]);
    const log = "/observability/logs?resourceType=images&workloadIds=hostile&search=begun";
    await eventually(async () => (await call<LogPages>("GET", log)).body.hostile?.totalCount === 2); // the step, and its output
    assert.equal((await call("GET", "/images/_/hostile")).body.metadata.status, "BUILDING");
    assert.equal((await call("DELETE", "/images/sandbox/hostile")).status, 200);
    const records = globSync(join(suite.platform().dataDir, "**/workloads/*/record.json"));
    assert.ok(!records.some((file) => readFileSync(file, "utf8").includes('-step"')), "its workload has ended");
    const both = await call("POST", "/images?upload=true", { body: { ...body, image: "python:3" } });
    assert.equal(both.status, 400);
  });

  const events = async (path: string): Promise<string> =>
    JSON.stringify(
      (await call("GET", path)).body.events?.map(({ type, message }: { type: string; message: string }) => [
        type,
        message,
      ]),
    );
  const statusOf = async (path: string): Promise<string> => (await call("GET", path)).body.status;
  /** Waits for an end, which has to be the one that is expected. */
  const settles = async (path: string, status: string): Promise<void> => {
    await eventually(async () => ["DEPLOYED", "FAILED"].includes(await statusOf(path)));
    assert.equal(await statusOf(path), status, await events(path));
  };
  const upload = async (method: string, path: string, body: object, files: Entry[]): Promise<void> => {
    const asked = await call(method, `${path}?upload=true`, { body });
    assert.equal(asked.status, 200, JSON.stringify(asked.body));
    assert.equal(asked.body.status, "UPLOADING");
    const sent = await fetch(asked.headers.get("x-service-upload-url") ?? "", { method: "PUT", body: tar(files) });
    assert.equal(sent.status, 200, await sent.text());
  };

  test("an agent and a job whose code has a Dockerfile run what it builds", async () => {
    const server =
      "require('http').createServer((q, s) => s.end(`${process.env.MADE} ${require('fs').readFileSync('made')}`)).listen(process.env.PORT, process.env.HOST)";
    const Dockerfile = lines(
      "FROM service/base-image",
      "ARG WORD",
      "ENV MADE=by-docker",
      "WORKDIR /srv/app",
      "COPY *.js .",
      "RUN echo $WORD > made",
      'CMD ["node", "server.js"]',
    );
    const files = [
      { path: "Dockerfile", content: Dockerfile },
      { path: "server.js", content: server },
      { path: "package.json", content: '{"scripts": {"start": "exit 1"}}' },
      { path: ".env.build", content: "WORD=from-the-archive" },
    ];
    await upload("POST", "/agents", { metadata: { name: "docked" }, spec: { runtime: { memory: 256 } } }, files);
    await settles("/agents/docked", "DEPLOYED");
    const { url, apiKey } = suite.platform();
    const answer = await fetch(`${url}/main/agents/docked`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}` },
    });
    assert.equal(await answer.text(), "by-docker from-the-archive\n");
    assert.match(await events("/agents/docked"), /uploaded.*building.*built.*deployed/s);
    const log = (await call("GET", "/observability/logs?resourceType=agents&workloadIds=docked&type=build")).body
      .docked;
    assert.match(JSON.stringify(log), /RUN echo \$WORD/);

    const task = lines("FROM service/base-image", 'CMD ["sh", "-c", "echo the task ran"]');
    await upload("POST", "/jobs", { metadata: { name: "docked" }, spec: { runtime: { memory: 256 } } }, [
      { path: "Dockerfile", content: task },
    ]);
    await settles("/jobs/docked", "DEPLOYED");
    assert.equal((await call("POST", "/jobs/docked/executions", { body: { tasks: [{}] } })).status, 200);
    const said = "/observability/logs?resourceType=jobs&workloadIds=docked&type=run&search=ran";
    await eventually(async () => (await call<LogPages>("GET", said)).body.docked?.totalCount === 1);

    await upload("PUT", "/agents/docked", { metadata: { name: "docked" }, spec: { runtime: { memory: 256 } } }, [
      { path: "Dockerfile", content: "FROM service/base-image\nRUN exit 9\n" },
    ]);
    await settles("/agents/docked", "FAILED");
    assert.match(await events("/agents/docked"), /line 2: RUN exit 9: exit code 9/);
    for (const path of ["/agents/docked", "/jobs/docked"]) assert.equal((await call("DELETE", path)).status, 200);
  });

  test("`berth deploy` of a folder with a Dockerfile: an application answers, and the build was shown", async () => {
    const server =
      "require('http').createServer((_, s) => s.end('docked ' + require('./dist/word'))).listen(process.env.PORT, process.env.HOST)";
    write({
      "site/Dockerfile": lines(
        "FROM service/base-image",
        "WORKDIR /site",
        "COPY . .",
        "RUN ls -A > listed; cat listed",
        'CMD ["node", "server.js"]',
      ),
      "site/server.js": server,
      "site/dist/word.js": "module.exports = 'by dist'",
      "site/notes.txt": "",
      "site/.env": "NAME=value",
      "site/.dockerignore": "notes.txt\n",
      "site/service.toml": 'type = "application"\nname = "site"\nmemory = 256\n',
    });
    const { code, stdout, stderr } = await runBerth(["deploy", join(folder, "site")], { env: environment() });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /RUN ls -A[\s\S]*server\.js[\s\S]*deployed:/);
    assert.doesNotMatch(stderr, /notes\.txt|^\s*\.env$/m);
    const answer = await fetch(stdout.trim(), { headers: { authorization: `Bearer ${suite.platform().apiKey}` } });
    assert.equal(await answer.text(), "docked by dist");
    assert.equal((await call("DELETE", "/applications/site")).status, 200);
  });

  test("a sandbox runs the image that its archive builds; what has no Dockerfile fails; a delete ends the build", async () => {
    const body = { metadata: { name: "docked" }, spec: { runtime: { memory: 256 } } };
    const from = (line: string): Entry[] => [{ path: "Dockerfile", content: `FROM service/base-image\nRUN ${line}\n` }];
    await upload("POST", "/sandboxes", body, from("echo one > /made"));
    await settles("/sandboxes/docked", "DEPLOYED");
    assert.equal((await suite.exec("docked", "cat /made")).body.stdout, "one\n");
    assert.match(await events("/sandboxes/docked"), /uploading.*building.*built.*deployed/s);
    await upload("PUT", "/sandboxes/docked", body, from("echo two > /made"));
    await settles("/sandboxes/docked", "DEPLOYED");
    assert.equal((await suite.exec("docked", "cat /made")).body.stdout, "two\n");
    const tags = (await call("GET", "/images/sandbox/docked")).body.spec.tags.map(({ name }: { name: string }) => name);
    assert.ok(tags.includes("latest"), "other sandboxes may run it, too");
    await upload("POST", "/sandboxes", { metadata: { name: "bare" }, spec: {} }, [{ path: "index.js", content: "" }]);
    await settles("/sandboxes/bare", "FAILED");
    assert.match(await events("/sandboxes/bare"), /no Dockerfile at the root/);
    await upload("POST", "/sandboxes", { metadata: { name: "slow" }, spec: {} }, from("sleep 600"));
    await eventually(async () =>
      globSync(join(suite.platform().dataDir, "**/workloads/*/record.json")).some((file) =>
        readFileSync(file, "utf8").includes('-step"'),
      ),
    );
    assert.equal(await statusOf("/sandboxes/slow"), "BUILDING");
    assert.equal((await call("DELETE", "/sandboxes/slow")).status, 200);
    const records = globSync(join(suite.platform().dataDir, "**/workloads/*/record.json"));
    assert.ok(!records.some((file) => readFileSync(file, "utf8").includes('-step"')), "its workload has ended");
  });

  test("a server that ends in the middle of builds begins them again at its next start", async () => {
    const slow = "FROM service/base-image\nRUN echo 1 > /one\nRUN sleep 600\n";
    await upload("POST", "/sandboxes", { metadata: { name: "again" }, spec: { runtime: { memory: 256 } } }, [
      { path: "Dockerfile", content: slow },
    ]);
    const log = "/observability/logs?resourceType=sandboxes&workloadIds=again&search=sleep";
    await eventually(async () => (await call<LogPages>("GET", log)).body.again?.totalCount === 1);
    await suite.restart({ standby_after: "60", registries: registry.host });
    await eventually(async () => (await call<LogPages>("GET", log)).body.again?.totalCount === 2);
    assert.equal(await statusOf("/sandboxes/again"), "BUILDING");
    assert.equal((await call("DELETE", "/sandboxes/again")).status, 200);
  });
});
