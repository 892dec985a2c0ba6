import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { previewUrl, WORKLOADS, type WorkloadKind, workloadLabel, workloadUrl } from "../contract/addresses.ts";
import { isFacade } from "../contract/facades.ts";
import { RESERVED_WORDS } from "../contract/reserved-words.ts";
import { classify, hostName, type Route } from "./route.ts";

const settings = { domain: "berth.test", isCustomDomain: (host: string) => host === "shop.example" };
const at = (target: string, host = "127.0.0.1:8080"): Route => classify(target, host, settings);

test("path forms keep every byte behind the name", () => {
  const rows: [target: string, prefix: string, path: string][] = [
    ["/ws/agents/a", "/ws/agents/a", "/"],
    ["/ws/agents/a/", "/ws/agents/a", "/"],
    ["/ws/agents/a?x=1", "/ws/agents/a", "/?x=1"],
    ["/ws/agents/a?x=/v0/y", "/ws/agents/a", "/?x=/v0/y"],
    ["/ws/agents/a//tmp//b", "/ws/agents/a", "//tmp//b"],
    ["/ws/agents/a/%2Ftmp%2fb", "/ws/agents/a", "/%2Ftmp%2fb"],
    ["/ws/agents/a/../../v0/x", "/ws/agents/a", "/../../v0/x"],
    ["/ws/agents/a/./?a=b?c#d", "/ws/agents/a", "/./?a=b?c#d"],
    ["/run/ws/agents/a/b", "/run/ws/agents/a", "/b"],
    ["http://other:1/ws/agents/a/b", "/ws/agents/a", "/b"],
  ];
  for (const [target, prefix, path] of rows) {
    assert.deepEqual(at(target), { to: "workload", kind: "agent", workspace: "ws", name: "a", prefix, path }, target);
  }
});

test("every kind has a path and a host form", () => {
  for (const kind of Object.keys(WORKLOADS) as WorkloadKind[]) {
    const route = at(`/ws/${WORKLOADS[kind].plural}/x`);
    assert.deepEqual([route.to, "kind" in route && route.kind], ["workload", kind]);
    const host = at("/y", `${WORKLOADS[kind].label}-x-ws.eu-1.berth.test`);
    assert.deepEqual(host, { to: "label", kind, label: `${WORKLOADS[kind].label}-x-ws`, prefix: "", path: "/y" });
  }
});

test("reserved words and the root belong to management", () => {
  for (const word of RESERVED_WORDS) {
    if (word === "run" || isFacade(word)) continue;
    assert.deepEqual(at(`/${word}`), { to: "management" }, word);
    assert.deepEqual(at(`/${word}/agents/x`), { to: "management" }, word);
    assert.deepEqual(at(`/run/${word}/agents/x`), { to: "nothing" }, word);
  }
  for (const target of ["/", "/?x", "*"]) assert.deepEqual(at(target), { to: "management" }, target);
});

test("a façade has the paths below its beginning; the rest is a workspace's that had the name before", () => {
  const facade = { to: "facade", facade: "openai", prefix: "/openai" };
  assert.deepEqual(at("/openai/v1/chat/completions?x"), { ...facade, path: "/v1/chat/completions?x" });
  assert.deepEqual(at("/openai/v1?x"), { ...facade, path: "/v1?x" });
  assert.equal(at("/openai/v1models").to, "trigger");
  assert.equal(at("/openai/agents/x").to, "workload");
  assert.equal(at("/run/openai/v1/models").to, "trigger");
});

test("what names no workload leads nowhere", () => {
  for (const target of [
    "//ws/agents/a",
    "/ws",
    "/ws/",
    "/ws/agents",
    "/ws/agents/",
    "/ws/agents//a",
    "/run",
    "/run/",
  ]) {
    assert.deepEqual(at(target), { to: "nothing" }, target);
  }
  assert.deepEqual(at("/ws%2Fagents/agents/a"), { to: "nothing" });
  assert.deepEqual(at("/ws/agents/a%2Fb"), { to: "nothing" });
});

test("an unclaimed path inside a workspace may be a trigger's", () => {
  assert.deepEqual(at("/ws/hooks/in?x=1"), { to: "trigger", workspace: "ws", prefix: "/ws", path: "/hooks/in?x=1" });
});

test("the console's host leads to management, whatever the path, and never to a workload", () => {
  const consoleHost = "console.berth.test";
  for (const host of [consoleHost, "Console.Berth.Test.", `${consoleHost}:443`])
    for (const path of [
      "/ws/agents/a/b",
      "/run/ws/sandboxes/s",
      "/hook",
      "/v0/agents",
      `http://${consoleHost}/ws/agents/a`,
    ])
      assert.deepEqual(classify(path, host, { ...settings, consoleHost }), { to: "management" }, `${host} ${path}`);
  const other = { to: "workload", kind: "agent", workspace: "ws", name: "a", prefix: "/ws/agents/a", path: "/" };
  assert.deepEqual(classify("http://127.0.0.1/ws/agents/a", consoleHost, { ...settings, consoleHost }), other);
});

test("hosts", () => {
  const preview = { to: "preview", workspace: null, id: "abc", prefix: "", path: "/x?y" };
  assert.deepEqual(at("/x?y", "abc.preview.berth.test"), preview);
  assert.deepEqual(at("/x?y", "ABC.eu-1.Preview.berth.test.:443"), preview);
  assert.deepEqual(at("/x", "a.b.c.preview.berth.test"), { to: "nothing" });
  assert.deepEqual(at("/x", "agt-.eu.berth.test"), { to: "nothing" });
  assert.deepEqual(at("/v0/agents", "agt-a-w.eu.berth.test").to, "label");
  assert.deepEqual(at("/v0/agents", "berth.test"), { to: "management" });
  assert.deepEqual(at("/v0/agents", "any.eu-1.berth.test"), { to: "management" });
  assert.deepEqual(at("/v0/agents", "notberth.test"), { to: "management" });
  assert.deepEqual(at("/v0/a", "shop.example:8080"), { to: "domain", host: "shop.example", prefix: "", path: "/v0/a" });
  assert.deepEqual(at("http://shop.example/z", "127.0.0.1"), {
    to: "domain",
    host: "shop.example",
    prefix: "",
    path: "/z",
  });
  const port = { to: "facade", facade: "e2b", prefix: "", path: "/x?y", port: { sandbox: "box-main", number: 3000 } };
  assert.deepEqual(at("/x?y", "3000-box-main.berth.test:443"), port);
  assert.deepEqual(at("/v0/agents", "3000-box-main.eu.berth.test"), { to: "management" });
  assert.equal(hostName("[::1]:80"), "[::1]");
  assert.equal(hostName("a.test..:80"), "a.test");
  assert.deepEqual(classify("/v0/x", undefined, settings), { to: "management" });
});

test("a neighbour's internal name, from inside a workload", () => {
  const hash = "0123456789abcdef0123456789abcdef";
  const found = classify("/a?b", `BL-prod-${hash}.run.localhost:987`, { isCustomDomain: () => false });
  assert.deepEqual(found, { to: "internal", hash, prefix: "", path: "/a?b" });
  for (const host of ["other.run.localhost", `a.bl-prod-${hash}.run.localhost`, "bl-prod-12.run.localhost"])
    assert.deepEqual(classify("/", host, { isCustomDomain: () => false }), { to: "nothing" });
});

const name = fc.stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?$/);

test("published addresses are understood again", () => {
  const workspace = name.filter((word) => !RESERVED_WORDS.has(word));
  const kinds = fc.constantFrom(...(Object.keys(WORKLOADS) as WorkloadKind[]));
  fc.assert(
    fc.property(kinds, name, workspace, fc.constantFrom(undefined, "berth.test"), (kind, of, inside, domain) => {
      const url = new URL(
        workloadUrl({ publicUrl: "http://h:1", domain }, { kind, name: of, workspace: inside, region: "eu" }),
      );
      const route = at(`${url.pathname === "/" ? "" : url.pathname}/a//b`, url.host);
      if (route.to === "label") assert.equal(route.label, workloadLabel(kind, { name: of, workspace: inside }));
      else assert.ok(route.to === "workload" && route.name === of && route.workspace === inside, url.href);
      assert.equal("path" in route && route.path, "/a//b");
    }),
  );
  assert.equal(previewUrl({ publicUrl: "http://h:1" }, { workspace: "w", id: "p" }), "http://h:1/w/previews/p");
  assert.equal(
    previewUrl({ publicUrl: "https://h", domain: "d.test" }, { workspace: "w", id: "p", region: "eu" }),
    "https://p.eu.preview.d.test",
  );
});

test("a workload's rest is always the exact tail of the target", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme-ascii" }), (tail) => {
      const route = at(`/ws/sandboxes/s/${tail}`);
      assert.equal(route.to === "workload" && route.path, `/${tail}`);
    }),
  );
});
