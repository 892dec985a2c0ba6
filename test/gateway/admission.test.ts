/** Who gets in, what they are told when they do not, and how long they wait for a workload that starts. */
import assert from "node:assert/strict";
import { GatewayError } from "../../src/contract/gateway-errors.ts";
import type { InstanceLease } from "../../src/gateway/deps.ts";
import { AUTH, answering, eventually, exchange, inBothLanes, OK, RawClient, rawUpstream } from "./harness.ts";

const ask = (port: number, path: string, headers = AUTH, host = "h", method = "GET"): Promise<string> =>
  exchange(port, `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`);
const codeOf = (response: string): string => {
  const body = JSON.parse(response.slice(response.indexOf("\r\n\r\n") + 4)) as {
    error: { code: string; status: number };
  };
  assert.ok(response.startsWith(`HTTP/1.1 ${body.error.status} `));
  return body.error.code;
};

inBothLanes("refusals, each with its code", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({
    upstream: up.port,
    workloads: [{}, { name: "off", enabled: false }],
    domain: "berth.test",
  });
  const rows: [path: string, headers: string, code: string, host?: string][] = [
    ["/ws/agents/a", "", "AUTHENTICATION_REQUIRED"],
    ["/ws/agents/a", "Authorization: Basic Zm9v\r\n", "AUTHENTICATION_REQUIRED"],
    ["/ws/agents/a", "X-Berth-Authorization: Bearer nope\r\n", "AUTHENTICATION_FAILED"],
    ["/ws/agents/a", "X-Service-Authorization: nope\r\nAuthorization: Bearer good\r\n", "AUTHENTICATION_FAILED"],
    ["/ws/agents/a", "Authorization: Bearer foreign\r\n", "FORBIDDEN"],
    ["/ws/agents/none", "", "AUTHENTICATION_REQUIRED"],
    ["/ws/agents/none", "Authorization: Bearer foreign\r\n", "FORBIDDEN"],
    ["/ws/agents/none", AUTH, "WORKLOAD_NOT_FOUND"],
    ["/ws/agents/off", AUTH, "WORKLOAD_DISABLED"],
    ["/ws/agents/off", "", "AUTHENTICATION_REQUIRED"],
    ["/ws/agents", AUTH, "ROUTE_NOT_FOUND"],
    ["/ws/other/x", AUTH, "ROUTE_NOT_FOUND"],
    ["/x", AUTH, "ROUTE_NOT_FOUND", "agt-x-y.eu.berth.test"],
    ["/x", AUTH, "ROUTE_NOT_FOUND", "nope.preview.berth.test"],
  ];
  for (const [path, headers, code, host] of rows) {
    assert.equal(codeOf(await ask(gw.port, path, headers, host)), code, `${path} ${headers} ${host}`);
  }
  assert.equal(up.connections.length, 0);
  assert.match(await gw.registry.metrics(), /berth_gateway_errors_total\{error="FORBIDDEN"\} 2/);
});

inBothLanes("every way to a workload", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({
    upstream: up.port,
    workloads: [{ name: "my-agent", workspace: "my-ws" }],
    domain: "berth.test",
  });
  const rows: [path: string, host?: string][] = [
    ["/my-ws/agents/my-agent/p"],
    ["/run/my-ws/agents/my-agent/p"],
    ["/p", "agt-my-agent-my-ws.eu-1.berth.test"],
    ["/p", "AGT-my-agent-my-ws.berth.test:8080"],
    ["/p", "shop.example"],
  ];
  for (const [path, host] of rows) {
    assert.match(await ask(gw.port, path, AUTH, host), /^HTTP\/1\.1 200 OK/, `${path} ${host}`);
    assert.match(up.received.join("").split("GET ").at(-1) ?? "", /^\/p HTTP\/1\.1/);
  }
  assert.match(await ask(gw.port, "/my-ws/hook/x"), /200 OK/);
  assert.match(await ask(gw.port, "/v0/agents"), /management$/);
  assert.equal(gw.records.length, 6);
});

inBothLanes("the error body says what to do, and who speaks", async (start) => {
  await using gw = await start({ upstream: 1 });
  const response = await ask(gw.port, "/ws/agents/a", "X-Request-Id: r1\r\n");
  const body = JSON.parse(response.slice(response.indexOf("\r\n\r\n") + 4));
  assert.deepEqual(Object.keys(body.error).sort(), [
    "action",
    "code",
    "do_not",
    "docs_url",
    "message",
    "origin",
    "retryable",
    "status",
    "timestamp",
  ]);
  assert.equal(body.error.docs_url, "http://docs.test/gateway#authentication_required");
  for (const line of ["Content-Type: application/json", "X-Request-Id: r1"]) {
    assert.ok(response.includes(`\r\n${line}\r\n`), line);
  }
  assert.match(response, /\r\nwww-authenticate: Bearer resource_metadata="/i);
});

inBothLanes("what deps throw is translated; what they should not throw is hidden", async (start) => {
  await using gw = await start({
    upstream: 1,
    deps: {
      resolve: (target) => {
        if (target.by === "name" && target.workspace === "gone") throw new GatewayError("WORKSPACE_NOT_FOUND");
        throw new Error("the database password is hunter2");
      },
    },
  });
  assert.equal(codeOf(await ask(gw.port, "/gone/agents/a")), "WORKSPACE_NOT_FOUND");
  const response = await ask(gw.port, "/ws/agents/a");
  assert.equal(codeOf(response), "INTERNAL_ERROR");
  assert.doesNotMatch(response, /hunter2/);
  assert.equal(gw.logged.length, 1);
});

inBothLanes("a request waits while its workload starts, and is told how long", async (start) => {
  await using up = await rawUpstream(answering(OK));
  let wake: (lease: InstanceLease) => void = () => {};
  await using gw = await start({
    upstream: up.port,
    deps: { ready: () => null, wake: () => new Promise((resolve) => (wake = resolve)) },
  });
  const response = ask(gw.port, "/ws/agents/a");
  await eventually(() => wake.length === 1, "the workload is woken");
  assert.match(await gw.registry.metrics(), /berth_gateway_held_requests 1/);
  let released = 0;
  wake({ key: "k", release: () => (released += 1) });
  assert.match(await response, /200 OK/);
  assert.ok((gw.records[0]?.heldMs ?? 0) > 0);
  assert.equal(released, 1);
  assert.match(await gw.registry.metrics(), /berth_gateway_cold_start_seconds_count\{kind="agent"\} 1/);
  assert.match(await gw.registry.metrics(), /berth_gateway_held_requests 0/);
});

inBothLanes("a start that takes too long, fails, or is one too many", async (start) => {
  let released = 0;
  await using slow = await start({
    upstream: 1,
    limits: { holdMs: 30 },
    deps: {
      ready: () => null,
      wake: (_, __, { signal }) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => resolve({ key: "late", release: () => (released += 1) })),
        ),
    },
  });
  assert.equal(codeOf(await ask(slow.port, "/ws/agents/a")), "COLD_START_TIMEOUT");
  await eventually(() => released === 1, "the late lease is given back");
  assert.deepEqual([slow.records[0]?.status, slow.records[0]?.error], [504, "COLD_START_TIMEOUT"]);

  await using broken = await start({
    upstream: 1,
    deps: {
      ready: () => null,
      wake: () => Promise.reject(new GatewayError("WORKLOAD_START_FAILED", undefined, { insight: "Exit code 1." })),
    },
  });
  assert.match(await ask(broken.port, "/ws/agents/a"), /^HTTP\/1\.1 503 [\s\S]*Exit code 1\./);

  await using full = await start({ upstream: 1, limits: { heldMax: 0 }, deps: { ready: () => null } });
  assert.match(await ask(full.port, "/ws/agents/a"), /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1[\s\S]*OVERLOADED/i);
});

inBothLanes("a client that leaves while it is held ends the start it asked for", async (start) => {
  let aborted = false;
  await using gw = await start({
    upstream: 1,
    deps: {
      ready: () => null,
      wake: (_, __, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(signal.reason);
          }),
        ),
    },
  });
  const client = await RawClient.to(gw.port);
  client.write(`POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Content-Length: 5\r\n\r\n`);
  await eventually(() => client.socket.bytesWritten > 0, "sent");
  const metrics = async (): Promise<boolean> => /held_requests 1/.test(await gw.registry.metrics());
  while (!(await metrics())) await new Promise(setImmediate);
  client.socket.destroy();
  await eventually(() => aborted && gw.records.length === 1, "the wait ends");
  assert.deepEqual([gw.records[0]?.clientGone, gw.records[0]?.status], [true, 0]);
});

inBothLanes("revisions: the canary takes its share and a cookie keeps the choice", async (start) => {
  await using up = await rawUpstream(answering(OK));
  let draw = 0;
  await using gw = await start({
    upstream: up.port,
    workloads: [{ revisions: { active: "r1", canary: "r2", canaryPercent: 30, stickyTtlSeconds: 60 } }],
    deps: { random: () => draw },
  });
  const first = await ask(gw.port, "/ws/agents/a");
  const cookie = /Set-Cookie: (berth_revision=[^;]+); Path=\/ws\/agents\/a; HttpOnly; Max-Age=60; SameSite=Lax/.exec(
    first,
  );
  assert.ok(cookie?.[1], first);
  draw = 0.9;
  const second = await ask(gw.port, "/ws/agents/a", `${AUTH}Cookie: x=1; ${cookie[1]}\r\n`);
  assert.doesNotMatch(second, /Set-Cookie/);
  await ask(gw.port, "/ws/agents/a");
  assert.deepEqual(
    gw.records.map((record) => record.revision),
    ["r2", "r2", "r1"],
  );
  assert.doesNotMatch(up.received.join(""), /berth_revision/);
});

inBothLanes("cookies are marked for encrypted connections only behind a terminator that says so", async (start) => {
  await using up = await rawUpstream(answering(OK));
  const workloads = [{ revisions: { active: "r1", canary: "r2", canaryPercent: 30, stickyTtlSeconds: 60 } }];
  for (const trustProxy of [true, false]) {
    await using gw = await start({ upstream: up.port, workloads, trustProxy });
    const response = await ask(gw.port, "/ws/agents/a", `${AUTH}X-Forwarded-Proto: https\r\n`);
    assert.equal(/SameSite=Lax; Secure/.test(response), trustProxy);
  }
});

inBothLanes("a sandbox hears who asks; one request for a file is bounded, raw bodies are not", async (start) => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (received().endsWith("\r\n\r\n")) socket.write(OK);
    });
  });
  await using gw = await start({
    upstream: up.port,
    workloads: [{ kind: "sandbox", door: "api" }],
    limits: { sandboxFileMax: 100_000 },
  });
  const put = (type: string, length: number, path = "/filesystem//tmp/a"): Promise<string> =>
    ask(gw.port, `/ws/sandboxes/a${path}`, `${AUTH}Content-Type: ${type}\r\nContent-Length: ${length}\r\n`, "h", "PUT");
  // A JSON escape has six bytes for one of the content; what else belongs to a request has 64 KB.
  const [jsonMax, formMax] = [6 * 100_000 + 65_536, 100_000 + 65_536];
  assert.equal(codeOf(await put("application/json", jsonMax + 1)), "REQUEST_ENTITY_TOO_LARGE");
  assert.equal(codeOf(await put("multipart/form-data; boundary=x", formMax + 1)), "REQUEST_ENTITY_TOO_LARGE");
  assert.equal(codeOf(await put("application/json", jsonMax + 1, "/filesystem%2Ftmp/a")), "REQUEST_ENTITY_TOO_LARGE");
  assert.equal(up.connections.length, 0);
  assert.match(await put("application/json", jsonMax), /200 OK/);
  assert.match(await put("application/octet-stream", jsonMax + 1), /200 OK/);
  assert.match(await put("multipart/form-data; boundary=x", formMax + 1, "/filesystem-multipart/1/part"), /200 OK/);
  const head = up.received[0] ?? "";
  for (const word of ["Berth", "Service"]) {
    assert.match(
      head,
      new RegExp(`X-${word}-Subject-Id: good\r\nX-${word}-Subject-Type: user\r\nX-${word}-Auth-Method: api_key`),
    );
  }
  const chunked = await exchange(
    gw.port,
    `PUT /ws/sandboxes/a/filesystem/x HTTP/1.1\r\nHost: h\r\n${AUTH}Connection: close\r\nContent-Type: application/json\r\n` +
      `Transfer-Encoding: chunked\r\n\r\n${(jsonMax + 1).toString(16)}\r\n${"x".repeat(jsonMax + 1)}\r\n0\r\n\r\n`,
  );
  assert.equal(codeOf(chunked), "REQUEST_ENTITY_TOO_LARGE");
});

inBothLanes("while it stops, new requests are turned away and running ones finish", async (start) => {
  await using up = await rawUpstream(answering((head) => (head.includes("/slow") ? null : OK)));
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`GET /ws/agents/a/slow HTTP/1.1\r\nHost: h\r\n${AUTH}\r\n`);
  await eventually(() => up.connections.length === 1, "the slow one runs");
  const stopped = gw.gateway.stop(60_000);
  assert.equal(codeOf(await ask(gw.port, "/ws/agents/a")), "SHUTTING_DOWN");
  up.connections[0]?.write(OK);
  await client.until((text) => text.endsWith("ok"));
  await stopped;
});
