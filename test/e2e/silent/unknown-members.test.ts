/** What a client sends and nobody knows is answered with a warning that names it, or refused where asked. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { readWarnings } from "../../../src/contract/warnings.ts";
import { KINDS } from "../../../src/kinds/index.ts";
import { runBerth } from "../../berth-process.ts";
import { type Answer, startTestPlatform, TEST_KEY, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
let folder: string;
before(async () => {
  platform = await startTestPlatform();
  folder = mkdtempSync(join(tmpdir(), "berth-silent-"));
});
after(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const warnings = ({ headers }: Answer): string[] => readWarnings(headers.get("warning"));
const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  platform.call("POST", path, { body, headers });

describe("members of a body", () => {
  test("that are mistyped are kept and named with the nearest one", async () => {
    const spec = { runtime: { memroy: 512 }, volums: [], memory: 512 };
    const made = await post("/agents", { metadata: { name: "typo", lables: {} }, spec, colour: "red" });
    assert.equal(made.status, 200);
    assert.match(made.headers.get("warning") ?? "", /^299 berth "/);
    assert.deepEqual(warnings(made).sort(), [
      "The member 'colour' is unknown and has no effect.",
      "The member 'metadata.lables' is unknown and has no effect; did you mean 'metadata.labels'?",
      "The member 'spec.memory' is unknown and has no effect; did you mean 'spec.runtime.memory'?",
      "The member 'spec.runtime.memroy' is unknown and has no effect; did you mean 'spec.runtime.memory'?",
      "The member 'spec.volums' is unknown and has no effect; did you mean 'spec.volumes'?",
    ]);
    assert.equal(made.body.spec.runtime.memroy, 512, "it is kept");
  });

  test("inside lists are named by their place", async () => {
    const envs = [
      { name: "A", value: "1" },
      { name: "B", vale: "2" },
    ];
    const made = await post("/agents", { metadata: { name: "in-list" }, spec: { runtime: { envs } } });
    assert.deepEqual(warnings(made), [
      "The member 'spec.runtime.envs[1].vale' is unknown and has no effect; did you mean 'spec.runtime.envs[1].value'?",
    ]);
  });

  test("that are maps may have any key, and a manifest may say what it is", async () => {
    const labels = { anything: "goes", "a.b/c": "d" };
    const made = await post("/drives", {
      apiVersion: "x/v1",
      kind: "Drive",
      metadata: { name: "maps", labels },
      spec: {},
    });
    assert.equal(made.status, 200);
    assert.deepEqual(warnings(made), []);
  });

  test("that clients of the contract send are known", async () => {
    const runtime = { type: "mcp", transport: "websocket", skipBuild: "true", dockerConfig: "{}", generation: "mk3" };
    const made = await post("/functions", { metadata: { name: "odd" }, spec: { type: "mcp", runtime } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.deepEqual(warnings(made), []);
  });

  test("cannot break the header, however they are called", async () => {
    const odd = { 'a"b\\c\r\nset-cookie: x=1': 1, größe: 2, ["k".repeat(5000)]: 3 };
    const made = await post("/drives", { metadata: { name: "odd-names" }, spec: odd });
    assert.equal(made.status, 200);
    assert.equal(made.headers.get("set-cookie"), null);
    const [first, second, third] = warnings(made);
    assert.match(first ?? "", /'spec\.a"b\\c\?\?set-cookie: x=1'/);
    assert.match(second ?? "", /'spec\.gr\?\?e'/);
    assert.ok((third ?? "").length < 300);
  });

  test("are not warned of without end", async () => {
    const spec = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`unknown${at}`, at]));
    const made = await post("/drives", { metadata: { name: "many-unknown" }, spec });
    assert.equal(made.status, 200);
    const told = warnings(made);
    assert.equal(told.length, 9);
    assert.match(told.at(-1) ?? "", /more warnings are not shown/);
  });

  test("are refused where the caller asks for strict handling, and nothing is made", async () => {
    const body = { metadata: { name: "strict" }, spec: { sise: 1 } };
    const refused = await post("/drives", body, { prefer: "respond-async, handling=strict" });
    assert.equal(refused.status, 400);
    assert.equal(refused.body.error, "unknown_member");
    assert.match(refused.body.message, /'spec\.sise' is unknown and has no effect; did you mean 'spec\.size'\?/);
    assert.equal((await platform.call("GET", "/drives/strict")).status, 404);
    assert.equal((await post("/drives", body, { prefer: "handling=lenient" })).status, 200);
  });

  test("an idempotent request is warned again when it is sent again", async () => {
    const body = { metadata: { name: "twice" }, spec: { sise: 1 } };
    const first = await post("/drives", body, { "idempotency-key": "twice-1" });
    const second = await post("/drives", body, { "idempotency-key": "twice-1" });
    assert.equal(second.body.metadata.uid, first.body.metadata.uid);
    assert.deepEqual(warnings(second), warnings(first));
    assert.equal(warnings(second).length, 1);
  });
});

/** A body that each kind takes as it is. */
const BODIES: Readonly<Record<string, object>> = {
  customdomain: { metadata: { name: "known.example.test" }, spec: {} },
  integrationconnection: { spec: { integration: "openai", secret: { apiKey: "x" } } },
  model: { spec: { runtime: { type: "mock" } } },
  policy: { spec: { type: "maxToken", maxTokens: { total: 10 } } },
};

describe("what is read can be written back without a warning", () => {
  for (const kind of KINDS.filter(({ within, operation }) => !within && operation.create && operation.get)) {
    test(kind.name, async () => {
      const body = { metadata: { name: "known" }, spec: {}, ...BODIES[kind.name] };
      const made = await post(kind.collectionPath, body);
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.deepEqual(warnings(made), []);
      const item = `${kind.collectionPath}/${made.body.metadata.name}`;
      const read = await platform.call("GET", item);
      assert.deepEqual(warnings(read), []);
      if (!kind.operation.update) return;
      const written = await platform.call("PUT", item, { body: read.body });
      assert.equal(written.status, 200, JSON.stringify(written.body));
      assert.deepEqual(warnings(written), []);
    });
  }
});

describe("parameters of a query", () => {
  test("that are unknown are named with the nearest one", async () => {
    const listed = await platform.call("GET", "/drives?limt=3&workspace=main");
    assert.equal(listed.status, 200);
    assert.deepEqual(warnings(listed), [
      "The query parameter 'limt' is unknown and has no effect; did you mean 'limit'?",
    ]);
    const strict = await platform.call("GET", "/drives?limt=3", { headers: { prefer: "handling=strict" } });
    assert.equal(strict.status, 400);
    assert.equal(strict.body.error, "unknown_member");
  });

  test("that act in newer versions only are known in older ones", async () => {
    const listed = await platform.call("GET", "/drives?sort=name:asc", { version: null });
    assert.equal(listed.status, 200);
    assert.deepEqual(warnings(listed), []);
  });

  test("that would choose entries in newer versions are named in older ones, which list all", async () => {
    const old = await platform.call("GET", "/drives?q=none&status=FAILED&sort=name:asc", { version: null });
    assert.deepEqual(warnings(old), [
      "The query parameter 'q' has no effect before version 2026-04-28: the list has all entries.",
      "The query parameter 'status' has no effect before version 2026-04-28: the list has all entries.",
    ]);
    const now = await platform.call("GET", "/drives?q=none");
    assert.deepEqual(warnings(now), []);
  });

  test("that are empty count as absent", async () => {
    for (const query of ["limit=", "sort=", "cursor=&q=&anchor=&status=&showTerminated=&externalId=", "workspace="]) {
      const listed = await platform.call("GET", `/drives?${query}`);
      assert.equal(listed.status, 200, `${query}: ${JSON.stringify(listed.body)}`);
      assert.deepEqual(warnings(listed), []);
    }
    await post("/agents", { metadata: { name: "quiet" }, spec: {} });
    assert.equal((await platform.call("GET", "/agents/quiet?show_secrets=")).status, 200);
  });

  test("that the metrics refuse stay refused", async () => {
    const { body: accounts } = await platform.call("GET", "/accounts");
    const window = "startTime=2026-01-01T00:00:00Z&endTime=2026-01-02T00:00:00Z";
    const path = `/accounts/${accounts[0].id}/metrics?${window}`;
    assert.equal((await platform.call("GET", path)).status, 200);
    for (const refused of ["label=x", "unit=x"])
      assert.equal((await platform.call("GET", `${path}&${refused}`)).status, 400, refused);
  });
});

describe("the command line", () => {
  const env = (): Record<string, string> => ({
    BERTH_URL: platform.url,
    BERTH_API_KEY: TEST_KEY,
    BERTH_DATA: join(folder, "data"),
  });
  const berth = (...args: string[]) => runBerth(args, { env: env() });
  const file = (text: string): string => {
    const path = join(folder, "manifest.yaml");
    writeFileSync(path, text);
    return path;
  };
  const MISTYPED = "kind: Drive\nmetadata:\n  name: from-file\nspec:\n  sise: 10\n";

  test("shows warnings on standard error and goes on", async () => {
    const made = await berth("create", "drive", "warned", "--set", "spec.sise=1", "-o", "name");
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stderr, /^berth: warning: The member 'spec\.sise' is unknown.*did you mean 'spec\.size'\?$/m);
    assert.equal(made.stdout, "warned\n");
  });

  test("--strict fails with the code of wrong usage, and nothing is made", async () => {
    const made = await berth("create", "drive", "not-made", "--set", "spec.sise=1", "--strict");
    assert.equal(made.code, 2, made.stderr);
    assert.match(made.stderr, /did you mean 'spec\.size'\?/);
    assert.equal((await platform.call("GET", "/drives/not-made")).status, 404);
    const listed = await berth("list", "drives", "--query", "limt=1", "--strict");
    assert.equal(listed.code, 2, listed.stderr);
    const applied = await berth("apply", "-f", file(MISTYPED), "--strict");
    assert.equal(applied.code, 2, applied.stderr);
    assert.equal((await platform.call("GET", "/drives/from-file")).status, 404);
  });

  test("apply --validate looks at files without a server", async () => {
    const bad = await runBerth(["apply", "-f", file(MISTYPED), "--validate"], {
      env: { BERTH_DATA: join(folder, "none") },
    });
    assert.equal(bad.code, 2, bad.stderr);
    assert.match(bad.stderr, /did you mean 'spec\.size'\?/);
    const good = await runBerth(["apply", "-f", file(MISTYPED.replace("sise", "size")), "--validate"], {
      env: { BERTH_DATA: join(folder, "none") },
    });
    assert.equal(good.code, 0, good.stderr);
    assert.equal(good.stdout, "drive 'from-file' valid\n");
  });
});
