import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Admitted } from "./admit.ts";
import { throughPort } from "./port-path.ts";

const admitted = (path: string, patch: Partial<Admitted["workload"]> = {}): Admitted => ({
  workload: {
    kind: "sandbox",
    uid: "u",
    workspace: "w",
    name: "s",
    public: false,
    enabled: true,
    revisions: null,
    door: "api",
    triggers: [],
    preview: null,
    elsewhere: null,
    ...patch,
  },
  principal: null,
  path,
  dropAuthorization: false,
  token: null,
  previewCookie: null,
});

test("the port's prefix is taken off and nothing else is touched", () => {
  const cases: [string, number | string, string][] = [
    ["/port/3000", 3000, "/"],
    ["/port/3000/", 3000, "/"],
    ["/port/3000?a=/port/1", 3000, "/?a=/port/1"],
    ["/port/3000//a%2Fb/../c?x=%20", 3000, "//a%2Fb/../c?x=%20"],
    ["/port/443/process", "api", "/process"],
    ["/port/3000x/a", "api", "/port/3000x/a"],
    ["/port/", "api", "/port/"],
    ["/ports/3000", "api", "/ports/3000"],
  ];
  for (const [path, door, rest] of cases) {
    const passed = throughPort(admitted(path)).admitted;
    assert.deepEqual([path, passed.workload.door, passed.path], [path, door, rest]);
  }
});

test("what is no port is refused", () => {
  for (const path of ["/port/0/", "/port/65536/", "/port/999999999"])
    assert.throws(() => throughPort(admitted(path)), GatewayError, path);
});

test("only a sandbox's own address has ports below it", () => {
  assert.equal(throughPort(admitted("/port/1/", { kind: "agent", door: 8080 })).admitted.path, "/port/1/");
  assert.equal(throughPort(admitted("/port/1/", { door: 4000 })).admitted.path, "/port/1/");
});
