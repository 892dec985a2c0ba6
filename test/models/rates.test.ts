/** Limits of one caller and of one session: others go on, and leaving the session out gains nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGateway } from "./gateway-harness.ts";
import { sendJson, startUpstream } from "./upstream-server.ts";

test("requests per key, and repeats per session", async () => {
  await using up = await startUpstream((_request, res) => sendJson(res, { id: "c", choices: [] }));
  const limited = (maxTokens: Record<string, unknown>) => ({
    ...{ type: "openai", baseUrl: up.baseUrl },
    policies: [{ name: "limit", type: "maxToken", maxTokens: { granularity: "month", ...maxTokens } }],
  });
  await using gateway = await startGateway({
    rated: limited({ requests: 2, per: "key" }),
    looping: limited({ repeats: 2, per: "session" }),
  });
  const ask = async (model: string, headers: Record<string, string> = {}, content = "again"): Promise<number> => {
    const answer = await fetch(`${gateway.url(model)}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ max_tokens: 10, messages: [{ role: "user", content }] }),
    });
    const text = await answer.text();
    if (answer.status === 429) {
      assert.match(text, /TOKEN_LIMIT_EXCEEDED/);
      assert.ok(Number(answer.headers.get("retry-after")) > 0);
    }
    return answer.status;
  };
  const statuses = async (times: number, ...asked: Parameters<typeof ask>): Promise<number[]> => {
    const found: number[] = [];
    for (let n = 0; n < times; n += 1) found.push(await ask(...asked));
    return found;
  };
  assert.deepEqual(await statuses(3, "rated"), [200, 200, 429]);
  assert.deepEqual(await statuses(3, "rated", { "x-test-key": "other" }), [200, 200, 429]);
  const session = { "x-service-session-id": "run-1" };
  assert.deepEqual(await statuses(3, "looping", session), [200, 200, 429]);
  assert.equal(await ask("looping", session, "something new"), 200);
  assert.deepEqual(await statuses(3, "looping", { "x-service-thread-id": "run-2" }), [200, 200, 429]);
  assert.deepEqual(await statuses(3, "looping"), [200, 200, 429], "no session is a session too");
  assert.equal(await ask("looping", { ...session, "x-test-key": "other" }), 200, "another caller's session");
});
