/** SIGKILL while models answer: whoever has its whole answer was counted, once. */

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type TestDatabase, testDatabases } from "../databases.ts";
import { LONG } from "../long.ts";
import { caller, TEST_KEY } from "../platform.ts";
import { type ServerProcess, startServer } from "../server-process.ts";
import { type ReceivedRequest, sendJson, startUpstream } from "./upstream-server.ts";

const databases = await testDatabases();
after(() => databases.stop());
const ROUNDS = LONG ? 20 : 1;
const CALLERS = 8;

for (const database of databases.all)
  describe(`killed while models answer, on ${database.name}`, { skip: database.skip }, () => {
    test(`${ROUNDS} rounds`, () => killRounds(database));
  });

async function killRounds(database: TestDatabase): Promise<void> {
  const place = await database.migrated();
  await using upstream = await startUpstream(answer);
  const answered: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await startServer(place);
    if (round === 0) await makeModel(server, upstream.baseUrl);
    const first = Promise.withResolvers<void>();
    const callers = Array.from({ length: CALLERS }, (_, n) =>
      askUntilDeath(server, n % 2 === 0, (tokens) => {
        answered.push(tokens);
        first.resolve();
      }),
    );
    // Whatever the speed of the machine, the kill falls into the answering. A server that ends by itself answers nobody.
    const all = Promise.all(callers).then(() => first.reject(new Error("the server was gone before it was killed")));
    await first.promise;
    await delay(Math.random() * 400);
    await server.kill("SIGKILL");
    await all;
  }
  const last = await startServer(place);
  const { requests, outputTokens } = (await caller(last.url)("GET", "/usage/models")).body.summary;
  const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0);
  const given = upstream.requests.map((_, index) => index + 1);
  assert.ok(answered.length >= ROUNDS, "the rounds asked something");
  assert.ok(requests >= answered.length, `${requests} counted of ${answered.length} that were answered`);
  assert.ok(requests <= given.length, `${requests} counted of ${given.length} that the provider served`);
  assert.ok(outputTokens >= sum(answered), `${outputTokens} tokens counted of ${sum(answered)} that were answered`);
  assert.ok(outputTokens <= sum(given), `${outputTokens} tokens counted of ${sum(given)} that were given`);
  await last.kill("SIGTERM");
  place.remove();
}

/** The n-th answer has n tokens: a sum tells which of them were counted. */
function answer(request: ReceivedRequest, res: ServerResponse, tokens: number): void {
  const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 };
  if (request.json.stream !== true) {
    sendJson(res, { id: "c", object: "chat.completion", choices: [CHOICE], usage });
    return;
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  const chunk = { id: "c", object: "chat.completion.chunk" };
  const delta = { index: 0, delta: { content: String(tokens) }, finish_reason: "stop" };
  for (const event of [
    { ...chunk, choices: [delta] },
    { ...chunk, choices: [], usage },
  ])
    res.write(`data: ${JSON.stringify(event)}\n\n`);
  // Who reads the last event has its answer, whenever the connection ends.
  res.write("data: [DONE]\n\n");
  setImmediate(() => res.end());
}

const CHOICE = { index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" };

async function makeModel(server: ServerProcess, baseUrl: string): Promise<void> {
  const call = caller(server.url);
  const make = async (path: string, name: string, spec: Record<string, unknown>): Promise<void> => {
    const made = await call("POST", path, { body: { metadata: { name }, spec } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  };
  await make("/integrations/connections", "provider", {
    integration: "openai",
    config: { baseUrl },
    secret: { apiKey: "sk-test" },
  });
  const runtime = { type: "openai", model: "gpt-4o-mini" };
  await make("/models", "m", { runtime, integrationConnections: ["provider"] });
}

async function ask({ url }: ServerProcess, stream: boolean): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/main/models/m/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hi" }], stream }),
  });
  if (!stream) return { status: response.status, text: await response.text() };
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (text.includes("[DONE]")) break;
  }
  return { status: response.status, text };
}

async function askUntilDeath(
  server: ServerProcess,
  stream: boolean,
  onAnswer: (tokens: number) => void,
): Promise<void> {
  for (;;) {
    const answered = await ask(server, stream).catch(() => null);
    if (!answered) return;
    assert.equal(answered.status, 200, answered.text);
    if (stream) onAnswer(Number(/"content":"(\d+)"/.exec(answered.text)?.[1]));
    else onAnswer(JSON.parse(answered.text).usage.completion_tokens);
  }
}
