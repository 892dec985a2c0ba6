/** Ways in which a member, who may not read the secret of a connection, tries to have it handed out. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { recordTag } from "../../src/kinds/image/images.ts";
import type { Driver } from "../../src/node/driver.ts";
import { pulledName } from "../../src/node/images/puller.ts";
import type { WorkloadSpec } from "../../src/node/workload.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { makeUser } from "../identities.ts";
import { tar } from "../image-archive.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { addImage, type FakeRegistry, startFakeRegistry } from "../registry/fake-registry.ts";

const SECRET = "postgres://boss:hunter2@db.example/payroll";
const HUB_IMAGE = "service/mcp-postgres:latest";

let platform: TestPlatform;
let machine: FakeMachine;
let member: string;
let registry: FakeRegistry;
/** Runs before the driver's images are looked at, as they are when a pull has replaced one. */
let beforeLook: () => Promise<unknown> = async () => {};

before(async () => {
  registry = await startFakeRegistry();
  machine = new FakeMachine({ images: ["service/base-image:latest", "loaded/first", "loaded/second"] });
  const driver = fakeDriver(machine);
  const create: typeof driver.create = (spec, options) => {
    asked.push(spec);
    return driver.create(spec, options);
  };
  const capability: Driver["capability"] = async (name) => {
    const found = await driver.capability(name);
    if (name === "images") await beforeLook();
    return found;
  };
  platform = await startTestPlatform({
    driver: { ...driver, create, capability },
    config: { registries: registry.host },
  });
  const { store } = platform.app;
  const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
  member = (await makeUser(store, accountId, "member", { main: "member" })).key;
  const spec = { integration: "postgres", secret: { POSTGRES_URL: SECRET } };
  await made(call("POST", "/integrations/connections", { body: { metadata: { name: "payroll" }, spec } }));
  const github = { integration: "github", secret: { GITHUB_TOKEN: "ghp_hunter2" } };
  await made(call("POST", "/integrations/connections", { body: { metadata: { name: "code" }, spec: github } }));
  for (const name of ["shelf", "shelf2"])
    await made(call("POST", "/volumes", { body: { metadata: { name }, spec: { size: 1 } } }));
  await made(call("POST", "/drives", { body: { metadata: { name: "files" }, spec: { size: 1 } } }));
});
after(async () => {
  await platform.stop();
  await machine.dispose();
  await registry[Symbol.asyncDispose]();
});

const call: TestPlatform["call"] = (method, path, options) =>
  platform.call(method, path, { workspace: "main", ...options });

async function made(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** What the driver was ever asked to start with the secret in it. */
const asked: WorkloadSpec[] = [];
const holding = () => asked.filter(({ env = {} }) => Object.values(env).some((value) => /hunter2/.test(value ?? "")));

let count = 0;
const tryFunction = (spec: object, { key = member, query = "" }: { key?: string; query?: string } = {}) => {
  count += 1;
  return call("POST", `/functions${query}`, { key, body: { metadata: { name: `try-${count}` }, spec } });
};

const withConnection = (more: object = {}, runtime: object = {}) => ({
  integrationConnections: ["payroll"],
  runtime: { image: HUB_IMAGE, ...runtime },
  ...more,
});

const LOADERS = [
  ...["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP"],
  ...["PYTHONHOME", "BASH_ENV", "ENV", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "BUN_OPTIONS", "GCONV_PATH"],
];

describe("a server of the hub with a connection", () => {
  test("takes no variables, mounts or code of the member", async () => {
    const volume = { name: "shelf", mountPath: "/lib/evil" };
    const attempts: [object, string?][] = [
      [withConnection({ volumes: [volume] }, { envs: [{ name: "LD_PRELOAD", value: "/lib/evil/x.so" }] })],
      [withConnection({ volumes: [volume] })],
      [withConnection({ volumes: [{ name: "tmp", type: "ephemeral", mountPath: "/etc", sizeMb: 8 }] })],
      [withConnection({ drives: [{ name: "files", mountPath: "/etc" }] })],
      [withConnection({}, { envs: [{ name: "HARMLESS", value: "1" }] })],
      [withConnection({}, { envs: [{ name: "POSTGRES_URL", value: "postgres://evil.example/x" }] })],
      [{ integrationConnections: ["payroll"], runtime: { envs: [{ name: "LD_PRELOAD", value: "x" }] } }],
      [{ integrationConnections: ["payroll"], runtime: { image: "service/base-image:latest" } }],
      [withConnection(), "?upload=true"],
    ];
    for (const [spec, query = ""] of attempts) {
      const { status, body } = await tryFunction(spec, { query });
      assert.ok(status === 400 || status === 403, `${status} for ${JSON.stringify(spec)}`);
      assert.doesNotMatch(JSON.stringify(body), /hunter2/);
    }
    assert.deepEqual(holding(), []);
  });

  test("is no way to the secret of a connection that is to another service", async () => {
    const volumes = [{ name: "shelf", mountPath: "/data" }];
    for (const image of ["service/mcp-filesystem:latest", "service/mcp-sqlite:latest", "service/mcp-memory:latest"]) {
      const { status } = await tryFunction({ integrationConnections: ["payroll"], volumes, runtime: { image } });
      assert.equal(status, 400, image);
    }
    const other = await tryFunction({ integrationConnections: ["code"], runtime: { image: HUB_IMAGE } });
    assert.equal(other.status, 400);
    assert.deepEqual(holding(), []);
  });

  test("takes none in an update either, and works without", async () => {
    const hub = await made(
      call("POST", "/functions", {
        key: member,
        body: { metadata: { name: "sql" }, spec: { integrationConnections: ["payroll"] } },
      }),
    );
    assert.equal(hub.spec.runtime.image, HUB_IMAGE);
    await until(() => holding().length > 0, "the hub's own server starts with the secret");
    for (const spec of [
      withConnection({}, { envs: [{ name: "LD_PRELOAD", value: "/x.so" }] }),
      withConnection({ volumes: [{ name: "shelf", mountPath: "/lib" }] }),
      withConnection({}, { image: "service/base-image:latest" }),
    ]) {
      const { status } = await call("PUT", "/functions/sql", { key: member, body: { metadata: hub.metadata, spec } });
      assert.ok(status === 400 || status === 403, JSON.stringify(spec));
    }
    const again = await call("PUT", "/functions/sql", { key: member, body: hub });
    assert.equal(again.status, 200, "what was read may be written back");
    for (const { exec, mounts = [] } of holding()) {
      assert.equal(exec?.builtin, "mcp-sql");
      assert.deepEqual(mounts, []);
    }
    await call("DELETE", "/functions/sql");
  });

  test("made before this rule does not start with what somebody put into it", async () => {
    const { store } = platform.app;
    const hub = await made(
      call("POST", "/functions", {
        body: { metadata: { name: "old" }, spec: { integrationConnections: ["payroll"], enabled: false } },
      }),
    );
    await store.resources.update("main", hub.metadata.uid, ({ spec }) => ({
      spec: {
        ...spec,
        enabled: true,
        runtime: { ...(spec.runtime as object), envs: [{ name: "LD_PRELOAD", value: "/x.so" }] },
      },
      intent: true,
      revision: true,
      actor: "test",
    }));
    const told = await until(async () => {
      const { body } = await call("GET", "/functions/old");
      return body.status === "FAILED" ? body : null;
    }, "it fails");
    assert.match(told.events.at(-1).message, /connection/);
    assert.deepEqual(
      holding().filter(({ env }) => env?.LD_PRELOAD !== undefined),
      [],
    );
    await call("DELETE", "/functions/old");
  });
});

describe("code with a connection", () => {
  const ADMIN = "test-admin-key-0123456789";
  const own = (envs: object[]) => ({
    integrationConnections: ["payroll"],
    runtime: { image: "service/base-image:latest", envs },
  });

  test("has no variable that loads other code, whoever deploys it", async () => {
    for (const name of LOADERS) {
      const { status, body } = await tryFunction(own([{ name, value: "x" }]), { key: ADMIN });
      assert.equal(status, 400, name);
      assert.match(body.message, /^spec\.runtime\.envs\[0\]\.name: /);
    }
    await made(tryFunction(own([{ name: "PYTHONUNBUFFERED", value: "1" }]), { key: ADMIN }));
    await made(
      tryFunction({
        runtime: { image: "service/base-image:latest", envs: [{ name: "NODE_OPTIONS", value: "--trace-warnings" }] },
      }),
    );
  });

  test("is the code that an admin deployed: an image that was replaced later does not start with the secret", async () => {
    const { store } = platform.app;
    const load = (tag: string, loaded: string) =>
      recordTag(
        {
          ...{ workspace: "main", resourceType: "function", name: "tool", tag, loaded, actor: "test" },
          ...{ status: "DEPLOYED" as const, event: { type: "loaded", message: "test" } },
        },
        { store, clock: { now: Date.now } },
      );
    await load("latest", "loaded/first");
    const spec = { integrationConnections: ["payroll"], runtime: { image: "function/tool:latest" } };
    const tool = { metadata: { name: "tool" }, spec };
    const { metadata } = await made(call("POST", "/functions", { body: tool }));
    const runs = (image: string) => holding().filter((one) => one.image === image).length;
    await until(() => runs("loaded/first") > 0, "the image that the admin deployed starts");
    // It ends at once, because nothing listens in it; until that is settled the loop is still at work on it.
    await until(
      async () => (await call("GET", "/functions/tool")).body.status === "FAILED",
      "the first start is settled",
    );
    // A later moment than that of the revision, on the clock that both are stamped with.
    const stamped = Date.now();
    await until(() => Date.now() > stamped, "the clock goes on");
    await load("latest", "loaded/second");
    await startAgain(metadata.uid);
    const told = await until(async () => {
      const text = JSON.stringify((await call("GET", "/functions/tool")).body.events);
      return /has changed since an admin deployed it/.test(text) ? text : null;
    }, "the start is refused");
    assert.doesNotMatch(told, /hunter2/);
    assert.equal(runs("loaded/second"), 0);
    await load("v2", "loaded/second");
    const next = { ...spec, runtime: { image: "function/tool:v2" } };
    await made(call("PUT", "/functions/tool", { body: { ...tool, spec: next } }));
    await until(() => runs("loaded/second") > 0, "what an admin deploys again starts");
  });

  test("is the image that starts: a tag that loses its content after the pull hides no other image", async () => {
    const layer = (content: string) => ({ layers: [tar([{ path: "tool", content }])] });
    const [tag, image] = ["/images/function/moving", `${registry.host}/acme/moving:1`];
    const good = addImage(registry, "acme/moving:1", layer("good"));
    const pull = (from: string) =>
      call("POST", "/images", {
        key: member,
        body: { name: "moving", resourceType: "function", tag: "latest", image: from },
      });
    await made(pull(image));
    const digest = async () => (await call("GET", tag)).body.spec.tags[0].digest;
    await until(async () => (await digest()) === good, "the image is pulled");
    const spec = {
      integrationConnections: ["payroll"],
      runtime: { image: "function/moving:latest", imagePullPolicy: "Always" },
    };
    const { metadata } = await made(call("POST", "/functions", { body: { metadata: { name: "moving" }, spec } }));
    const runs = (each: string) => holding().filter((one) => one.image === pulledName(each)).length;
    await until(() => runs(good) > 0, "the image that the admin deployed starts");
    const status = async () => (await call("GET", "/functions/moving")).body.status;
    await until(async () => (await status()) === "FAILED", "the first start is settled");
    const stamped = Date.now();
    await until(() => Date.now() > stamped, "the clock goes on");
    const evil = addImage(registry, "acme/moving:1", layer("evil"));
    let hidden = false;
    beforeLook = async () => {
      if (hidden || (await digest()) !== evil) return;
      hidden = true;
      // The registry has no such image: the tag stays without content.
      await made(pull(`${registry.host}/acme/nothing:1`));
    };
    await startAgain(metadata.uid);
    const told = await until(async () => {
      const text = JSON.stringify((await call("GET", "/functions/moving")).body.events);
      return runs(evil) > 0 || /has changed since an admin deployed it/.test(text) ? text : null;
    }, "the start is decided");
    beforeLook = async () => {};
    assert.equal(hidden, true, "the tag lost its content in between");
    assert.equal(runs(evil), 0, "the image of the member starts with the secret");
    assert.match(told, /has changed since an admin deployed it/);
  });
});

describe("a model with a connection", () => {
  test("sends the key nowhere that a member chose", async () => {
    const spec = { integration: "huggingface", secret: { HF_TOKEN: "hf_hunter2" } };
    await made(call("POST", "/integrations/connections", { body: { metadata: { name: "hf" }, spec } }));
    const model = (endpointName?: string) => ({
      integrationConnections: ["hf"],
      runtime: { type: "huggingface", model: "m", ...(endpointName === undefined ? {} : { endpointName }) },
    });
    const post = (name: string, body: object, key?: string) =>
      call("POST", "/models", { body: { metadata: { name }, spec: body }, ...(key === undefined ? {} : { key }) });
    const evil = "https://evil.endpoints.huggingface.cloud";
    assert.equal((await post("thief", model(evil), member)).status, 403);
    const plain = await made(post("plain", model(), member));
    const put = (endpointName: string, key?: string) =>
      call("PUT", "/models/plain", {
        body: { ...plain, spec: model(endpointName) },
        ...(key === undefined ? {} : { key }),
      });
    assert.equal((await put(evil, member)).status, 403);
    const chosen = await made(put("https://ours.endpoints.huggingface.cloud"));
    const kept = await call("PUT", "/models/plain", { key: member, body: chosen });
    assert.equal(kept.status, 200, "what an admin chose stays when a member changes something else");
    assert.equal((await put(evil, member)).status, 403);
  });
});

/** The same revision starts again, as it does after a crash or an idle time. */
const startAgain = (uid: string) =>
  platform.app.store.resources.update("main", uid, ({ spec, state }) => ({
    spec: { ...spec, revision: { active: "1" } },
    state: { ...state, revisions: {}, crashes: {}, copies: [] },
    intent: true,
  }));

async function until<T>(look: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const giveUp = Date.now() + 60_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < giveUp, `within a minute: ${what}`);
    await pause(10);
  }
}
