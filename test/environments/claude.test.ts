/** `berth environment claude` against a server that speaks the documented calls of a work queue, with real sandboxes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { runBerth } from "../berth-process.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";

const KEY = "environment-key";
const item = (id: string, secret: string | null, session = { type: "session", id: `sesn_${id}` }) => ({
  ...{ id, type: "work", environment_id: "env_1", state: "queued", secret, data: session },
});

/** Answers the polls with these items, one each, and keeps the other calls. */
async function startQueue(items: object[]) {
  const calls: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { pathname, searchParams } = new URL(request.url ?? "", "http://queue");
    const isKnown = request.headers.authorization === `Bearer ${KEY}` && searchParams.get("beta") === "true";
    const send = (status: number, said: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(said));
    if (!isKnown || request.headers["anthropic-beta"] !== "managed-agents-2026-04-01")
      return send(401, { type: "error", error: { type: "authentication_error", message: "no such key" } });
    if (pathname === "/v1/environments/env_1/work/poll") return send(200, items.shift() ?? null);
    calls.push(`${request.method} ${pathname.replace("/v1/environments/env_1/work/", "")} ${body}`.trim());
    return send(200, {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("a self-hosted environment", { skip: machineSkip }, () => {
  const { start, stop, platform } = sandboxSuite();
  before(() => start({ pool_size: "0" }));
  after(stop);

  const worker = (url: string, command: string, key = KEY) =>
    runBerth(["environment", "claude", "--environment-id", "env_1", "--drain", "--command", command], {
      env: {
        ...{ BERTH_URL: platform().url, BERTH_API_KEY: platform().apiKey, BERTH_WORKSPACE: "main" },
        ...{ ANTHROPIC_BASE_URL: url, ANTHROPIC_ENVIRONMENT_KEY: key, ANTHROPIC_API_KEY: "of-the-organization" },
      },
    });

  test("each session has a sandbox with its own credentials, and a failed one is stopped alone", async () => {
    await using queue = await startQueue([item("work_1", "secret-1"), item("work_2", null), item("work_3", "fail")]);
    const command =
      'env | grep -E "ANTHROPIC|BERTH|BL_API_KEY" | sort | tr "\\n" " "; [ "$ANTHROPIC_WORK_SECRET" != fail ]';
    const { code, stderr } = await worker(queue.url, command);
    assert.equal(code, 0, stderr);
    const lines = (id: string): string => stderr.match(new RegExp(`^sesn_${id}: ANTHROPIC.*$`, "m"))?.[0] ?? "";
    assert.match(lines("work_1"), /WORK_ID=work_1 .*WORK_SECRET=secret-1/);
    assert.doesNotMatch(lines("work_1"), /ENVIRONMENT_KEY|of-the-organization|BERTH|BL_API_KEY/);
    assert.match(lines("work_2"), /ENVIRONMENT_KEY=environment-key .*SESSION_ID=sesn_work_2/);
    assert.match(stderr, /sesn_work_1: ended[\s\S]*/);
    assert.match(stderr, /sesn_work_3: failed/);
    assert.deepEqual(queue.calls.sort(), [
      ...["POST work_1/ack", "POST work_2/ack", "POST work_3/ack"],
      'POST work_3/stop {"force":true}',
    ]);
    assert.deepEqual((await platform().call("GET", "/sandboxes")).body.data, []);
  });

  test("a hostile queue names no path, and a refused key ends the worker", async () => {
    await using queue = await startQueue([item("../../x", null)]);
    const bad = await worker(queue.url, "true");
    assert.notEqual(bad.code, 0);
    assert.deepEqual(queue.calls, []);
    await using other = await startQueue([item("work_1", null, { type: "session", id: "a b;c" })]);
    assert.match((await worker(other.url, "true")).stderr, /work_1 is no session; it is stopped/);
    const refused = await worker(other.url, "true", "another-key");
    assert.deepEqual([refused.code, /no such key/.test(refused.stderr)], [4, true], refused.stderr);
  });
});
