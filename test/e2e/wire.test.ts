/** Small things of the wire that existing clients rely on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { onEachDatabase } from "../each-platform.ts";
import { basic, machineToken } from "../identity/machine.ts";
import { makeRobot } from "../identity/people.ts";
import { eventually } from "../sandboxd-harness.ts";

await onEachDatabase("the wire", (suite) => {
  const { call, make } = suite;
  const auth = { "x-service-authorization": "Bearer test-admin-key-0123456789" };

  test("labels and display names change without an event", async () => {
    await make("/drives", "quiet");
    const put = (metadata: object, spec: object = {}) => call("PUT", "/drives/quiet", { body: { metadata, spec } });
    const before = (await call("GET", "/drives/quiet")).body;
    const after = (await put({ name: "quiet", displayName: "Quiet", labels: { a: "b" } }, before.spec)).body;
    assert.deepEqual([after.metadata.displayName, after.metadata.labels], ["Quiet", { a: "b" }]);
    assert.deepEqual(after.events, before.events);
  });

  test("a replacement takes its name from the address", async () => {
    await make("/policies", "named", { type: "location", locations: [{ type: "country", name: "us" }] });
    const spec = { type: "location", locations: [{ type: "country", name: "fr" }] };
    for (const body of [{ spec }, { metadata: {}, spec }, { metadata: { name: "" }, spec }]) {
      const { status, body: answer } = await call("PUT", "/policies/named", { body });
      assert.deepEqual([status, answer.metadata?.name, answer.spec?.locations?.[0]?.name], [200, "named", "fr"]);
    }
    const other = await call("PUT", "/policies/named", { body: { metadata: { name: "other" }, spec } });
    assert.equal(other.status, 400);
  });

  test("what is not there is 404 before its body is judged, and after its caller is", async () => {
    const bad = { metadata: { name: 7 }, spec: "no" };
    assert.equal((await call("PUT", "/drives/nowhere", { body: bad })).status, 404);
    assert.equal((await call("POST", "/sandboxes/nowhere/previews", { body: bad })).status, 404);
    assert.equal((await call("PUT", "/drives/nowhere", { body: bad, key: "wrong-key" })).status, 401);
    assert.equal((await call("PUT", "/drives/quiet", { body: bad })).status, 400);
  });

  test("what breaks a rule is told with its field and the rule, in plain words", async () => {
    const rows: [path: string, body: unknown, message: string][] = [
      ["/drives", { spec: {} }, "metadata: is required."],
      ["/drives", [], "The body: must be an object, not a list."],
      [
        "/drives",
        { metadata: { name: "d", displayName: 7 }, spec: {} },
        "metadata.displayName: must be a text, not a number.",
      ],
      ["/volumes", { metadata: { name: "v" }, spec: { size: "1" } }, "spec.size: must be a number, not a text."],
      ["/volumes", { metadata: { name: "v" }, spec: { size: 0 } }, "spec.size: must be more than 0."],
      [
        "/sandboxes",
        { metadata: { name: "s" }, spec: { runtime: { envs: {} } } },
        "spec.runtime.envs: must be a list, not an object.",
      ],
    ];
    for (const [path, body, message] of rows)
      assert.equal((await call("POST", path, { body })).body.message, message, `${path} ${JSON.stringify(body)}`);
    assert.equal((await call("GET", "/drives?limit=x")).body.message, "limit: must be a number.");
    assert.match((await call("GET", "/drives?sort=size")).body.message, /^sort: must be one of createdAt:desc, /);
  });

  test("empty search and trace of the logs are none", async () => {
    const path = "/observability/logs?resourceType=agents&search=&traceId=&severity=&executionId=&taskId=";
    assert.equal((await call("GET", path)).status, 200);
  });

  test("what the caller has already is not sent again", async () => {
    await make("/drives", "known");
    const first = await call("GET", "/drives/known");
    const etag = String(first.headers.get("etag"));
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await call("GET", "/drives/known", { headers: { "if-none-match": tag } });
      assert.deepEqual([again.status, again.body ?? null, again.headers.get("etag")], [304, null, etag], tag);
    }
    await call("PUT", "/drives/known", { body: { metadata: { name: "known", displayName: "New" }, spec: {} } });
    const changed = await call("GET", "/drives/known", { headers: { "if-none-match": etag } });
    assert.deepEqual([changed.status, changed.body.metadata.displayName], [200, "New"]);
  });

  test("what is computed is part of what the caller has", async () => {
    await make("/volumes", "joined");
    const { headers } = await call("GET", "/volumes/joined");
    const etag = String(headers.get("etag"));
    const same = await call("GET", "/volumes/joined", { headers: { "if-none-match": etag } });
    assert.equal(same.status, 304);
    await make("/sandboxes", "joiner", { volumes: [{ name: "joined", mountPath: "/data" }] });
    const now = await call("GET", "/volumes/joined", { headers: { "if-none-match": etag } });
    assert.deepEqual([now.status, now.body.state?.attachedTo], [200, "sandbox:joiner"]);
    const put = await call("PUT", "/volumes/joined", {
      headers: { "if-match": String(now.headers.get("etag")) },
      body: { metadata: { displayName: "Joined" }, spec: {} },
    });
    assert.equal(put.status, 200, JSON.stringify(put.body));
  });

  test("a preview token with an empty name gets one", async () => {
    await make("/sandboxes", "shown");
    await call("POST", "/sandboxes/shown/previews", { body: { metadata: { name: "web" }, spec: { port: 3000 } } });
    const made = await call("POST", "/sandboxes/shown/previews/web/tokens", {
      body: { metadata: { name: "" }, spec: {} },
    });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.match(made.body.metadata.name, /^previewtoken-\w+$/);
    const bad = await call("POST", "/sandboxes/shown/previews/web/tokens", { body: { metadata: { name: "a b" } } });
    assert.deepEqual([bad.status, /metadata\.name/.test(bad.body.message)], [400, true]);
  });

  test("deleted volumes are shown to whoever asks for them, and give their names free", async () => {
    await make("/volumes", "gone");
    assert.ok((await call("DELETE", "/volumes/gone")).body.terminatedAt);
    type Volume = { metadata: { name: string }; status: string; terminatedAt?: string };
    const listed = async (query: string) =>
      (await call<{ data: Volume[] }>("GET", `/volumes${query}`)).body.data.filter(
        ({ metadata }) => metadata.name === "gone",
      );
    await eventually(async () => (await listed("?showTerminated=true"))[0]?.status === "TERMINATED", "its end");
    assert.ok((await listed("?showTerminated=true"))[0]?.terminatedAt);
    assert.deepEqual(await listed(""), []);
    await make("/volumes", "gone");
    assert.equal((await listed("")).length, 1);
    assert.equal((await listed("?showTerminated=true")).length, 2);
  });

  test("events name the revision on trial, and a deployment leaves chosen traffic where it is", async () => {
    await make("/agents", "tried", { runtime: { image: "service/py-app:latest", memory: 256 } });
    const put = async (memory: number, revision?: object) =>
      (
        await call("PUT", "/agents/tried", {
          body: { spec: { runtime: { image: "service/py-app:latest", memory }, ...(revision ? { revision } : {}) } },
        })
      ).body;
    await put(300);
    const trial = await put(300, { active: "1", canary: "2", canaryPercent: 20 });
    assert.equal(trial.events.at(-1).canaryRevision, "2");
    const third = await put(400);
    assert.deepEqual(
      third.spec.revision,
      { active: "1", canary: "2", canaryPercent: 20 },
      "the first was not the latest",
    );
    const { id: active } = (await call("GET", "/agents/tried/revisions")).body[0];
    const latest = await put(400, { active, canary: "1", canaryPercent: 20 });
    assert.equal(latest.spec.revision.active, active);
    const fourth = await put(500, { active, canary: "1", canaryPercent: 20 });
    assert.deepEqual(fourth.spec.revision ?? {}, {}, "the third was the latest: all goes to the fourth");
    assert.deepEqual((await put(500, {})).spec.revision ?? {}, {});
  });

  test("a workspace that does not exist is told apart from one that is closed", async () => {
    const codeAt = async (path: string, headers: Record<string, string>) => {
      const answer = await fetch(`${suite.url()}${path}`, { headers });
      return [answer.status, ((await answer.json()) as { error: { code: string } }).error.code];
    };
    const missing = [404, "WORKSPACE_NOT_FOUND"];
    assert.deepEqual(await codeAt("/no-such-place/agents/a", auth), missing);
    assert.deepEqual(await codeAt("/no-such-place/models/m/v1/models", auth), missing);
    assert.deepEqual(await codeAt("/main/agents/nobody", auth), [404, "WORKLOAD_NOT_FOUND"]);
    assert.deepEqual(await codeAt("/no-such-place/agents/a", {}), [401, "AUTHENTICATION_REQUIRED"]);
  });

  test("one request id on every answer", async () => {
    const paths = [
      "/v0/drives",
      "/v0/nowhere",
      "/healthz",
      "/main/agents/nobody",
      "/main/models/nobody",
      "/.well-known/openid-configuration",
    ];
    for (const path of paths) {
      const answer = await fetch(suite.url() + path, { headers: auth });
      await answer.text();
      assert.match(answer.headers.get("x-request-id") ?? "", /^[\w.:/+=-]+$/, path);
    }
  });

  test("a device is told how often to ask", async () => {
    const answer = await fetch(`${suite.url()}/v0/oauth/device/code`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ client_id: "service", scope: "offline_access" }),
    });
    const body = (await answer.json()) as { device_code?: string; interval?: number };
    assert.ok(body.device_code, JSON.stringify(body));
    assert.equal(body.interval, 3);
  });

  test("one access token is ended, and no other", async () => {
    const [robot, stranger] = [await makeRobot(suite), await makeRobot(suite)];
    const [first, second] = [await machineToken(suite.url(), robot), await machineToken(suite.url(), robot)];
    const statusOf = async (key: string) => (await call("GET", "/drives", { key })).status;
    assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 200]);
    const revoke = async (token: string, authorization: string) =>
      (
        await fetch(`${suite.url()}/oauth/revoke`, {
          method: "POST",
          headers: { authorization, "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams({ token }),
        })
      ).status;
    assert.equal(await revoke(first, basic(stranger)), 400);
    assert.equal(await revoke(first, basic({ ...robot, secret: "not-it" })), 401);
    assert.equal(await statusOf(first), 200);
    assert.equal(await revoke(first, basic(robot)), 200);
    assert.deepEqual([await statusOf(first), await statusOf(second)], [401, 200]);
    assert.equal(await revoke(first, basic(robot)), 200, "once more says the same");
  });
});
