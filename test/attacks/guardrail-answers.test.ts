/** A provider, or a caller of a model, that wants a text past the guardrails of the model, or the server down. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { GuardrailRules } from "../../src/contract/model-guardrails.ts";
import { HeldText } from "../../src/models/guardrails/held-text.ts";
import type { Pattern } from "../../src/models/guardrails/patterns.ts";
import { startGateway } from "../models/gateway-harness.ts";
import { sendJson, startUpstream } from "../models/upstream-server.ts";

const REDACTED: GuardrailRules = { redact: { patterns: ["email"], answers: true } };
const EVENTS = "text/event-stream";

/** Asks a model whose provider answers so. */
async function answered(answer: (res: ServerResponse) => void, body: object = {}, guardrails = REDACTED) {
  await using up = await startUpstream((_, res) => answer(res));
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, guardrails } });
  const got = await fetch(`${gateway.url("m")}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "hello" }], ...body }),
  });
  return { status: got.status, text: await got.text(), asked: up.requests.length };
}

const sends =
  (type: string, body: string | Buffer, headers: Record<string, string | string[]> = {}) =>
  (res: ServerResponse): void =>
    void res.writeHead(200, { "content-type": type, ...headers }).end(body);

const stream = (events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const deltas = (make: (piece: string) => object): string =>
  stream(["mail a@b", ".example now"].map((piece) => ({ choices: [{ index: 0, delta: make(piece) }] })));

test("an answer whose compression is not known here is refused, and a known one is read however it is spelled", async () => {
  const whole = gzipSync(JSON.stringify({ choices: [{ message: { content: "a@b.example" } }] }));
  const events = gzipSync(deltas((content) => ({ content })));
  for (const encoding of ["zstd", "gzip, gzip", ["identity", "gzip"], "constructor"]) {
    const headers = { "content-encoding": encoding };
    assert.equal((await answered(sends("application/json", whole, headers))).status, 403, String(encoding));
    assert.equal((await answered(sends(EVENTS, events, headers), { stream: true })).status, 403, String(encoding));
  }
  for (const encoding of ["gzip", "GZIP", " Gzip "]) {
    const { status, text } = await answered(sends(EVENTS, events, { "content-encoding": encoding }), { stream: true });
    assert.deepEqual([status, /\[EMAIL\]/.test(text)], [200, true], encoding);
  }
});

test("an answer that nests thousands deep ends its request and not the server, compressed too", async () => {
  const deep = `data: {"text":"a@b.example","x":${"[".repeat(6000)}${"]".repeat(6000)}}\n\n`;
  for (const [body, headers] of [
    [deep, {}],
    [gzipSync(deep), { "content-encoding": "gzip" }],
  ] as const)
    assert.doesNotMatch((await answered(sends(EVENTS, body, headers), { stream: true })).text, /a@b/);
});

test("a text is not spelled out in tokens beside the redacted one", async () => {
  const logprobs = { content: [{ token: "a@", bytes: [97, 64] }, { token: "b.example" }] };
  const choice = { index: 0, message: { content: "a@b.example" }, logprobs, token_ids: [1, 2] };
  const { text } = await answered((res) => sendJson(res, { choices: [choice], prompt_logprobs: [logprobs] }));
  const kept = { index: 0, message: { content: "[EMAIL]" }, logprobs: null, token_ids: [] };
  assert.deepEqual(JSON.parse(text), { choices: [kept], prompt_logprobs: [] });
  const events = stream([{ choices: [{ index: 0, delta: { content: "a@b.example" }, logprobs }] }]);
  assert.doesNotMatch((await answered(sends(EVENTS, events), { stream: true })).text, /token/);
});

test("texts in pieces are found wherever providers put them, and those of two candidates are kept apart", async () => {
  for (const make of [
    (piece: string) => ({ function_call: { arguments: piece } }),
    (piece: string) => ({ audio: { transcript: piece } }),
    (piece: string) => ({ tool_calls: [{ index: 0, custom: { input: piece } }] }),
    (piece: string) => ({ content: [{ type: "text", text: piece }] }),
    (piece: string) => ({ content: [{ type: "thinking", thinking: [{ text: piece }] }] }),
    (piece: string) => ({ reasoning_details: [{ index: 0, text: piece }] }),
  ]) {
    const { text } = await answered(sends(EVENTS, deltas(make)), { stream: true });
    assert.match(text, /\[EMAIL\]/, JSON.stringify(make("")));
  }
  const said = (index: number, text: string) => ({ candidates: [{ index, content: { parts: [{ text }] } }] });
  const two = stream([said(0, "a@b"), said(1, "other"), said(0, ".example")]);
  const { text } = await answered(sends(EVENTS, two), { stream: true });
  assert.match(text, /\[EMAIL\][\s\S]*"index":1[^\n]*"other"/);
});

test("a stream under the name of JSON is refused", async () => {
  const lines = ["a@b", ".example"].map((content) => JSON.stringify({ message: { content } })).join("\n");
  for (const [type, body] of [
    ["application/json", deltas((content) => ({ content }))],
    ["application/x-ndjson", lines],
  ] as const)
    assert.equal((await answered(sends(type, body))).status, 403, type);
});

test("a text that is held is searched a bounded number of times", () => {
  let searched = 0;
  const counting: Pattern = {
    apply(text) {
      searched += text.length;
      return { text: text.startsWith("key") ? "[KEY]" : text, count: 0 };
    },
  };
  const held = new HeldText([counting]);
  const pieces = 1000;
  for (let piece = 0; piece < pieces; piece += 1)
    held.push(piece === 0 ? "key".padEnd(16, "x") : "x".repeat(16), () => {});
  held.end();
  assert.ok(searched < 40 * 16 * pieces, `${searched / (16 * pieces)} searches of each character`);
});

test("who writes a request or an answer cannot make it one that the webhook is not asked about", async () => {
  let asked = 0;
  await using hook = await startUpstream((_, res) => {
    asked += 1;
    sendJson(res, { action: "allow" });
  });
  const rules = (event: "request" | "response"): GuardrailRules => ({
    webhook: { url: hook.baseUrl, secret: "a secret of it", events: [event], onFailure: "allow" },
  });
  const large = "é".repeat(5 * 1024 * 1024);
  const reply = { choices: [{ index: 0, message: { content: "fine" } }] };
  const long = await answered((res) => sendJson(res, reply), { pad: large }, rules("request"));
  assert.deepEqual([long.status, long.asked], [403, 0]);
  assert.equal((await answered((res) => sendJson(res, { ...reply, large }), {}, rules("response"))).status, 403);
  assert.equal(asked, 0);
  const twice = '{"choices":[{"message":{"content":"bad"}}],"choices":[{"message":{"content":"good"}}]}';
  assert.doesNotMatch((await answered(sends("application/json", twice), {}, rules("response"))).text, /bad/);
  const hidden = ': bad\n\ndata: {"choices":[]}\n\ndata: plain\ndata: text\n\ndata: [DONE]\n\n';
  const { text } = await answered(sends(EVENTS, hidden), { stream: true }, rules("response"));
  assert.equal(text, 'data: {"choices":[]}\n\ndata: plain\ndata: text\n\ndata: [DONE]\n\n');
});

test("answers that guardrails hold are bounded over all requests, and their room comes back", async () => {
  const waiting: (() => void)[] = [];
  const rest = `,"filler":"${"x".repeat(3000)}"}`;
  await using up = await startUpstream((_, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.write(`{"choices":[]${rest.slice(0, -1)}`);
    waiting.push(() => res.end("}"));
  });
  await using gateway = await startGateway(
    { m: { type: "openai", baseUrl: up.baseUrl, guardrails: REDACTED } },
    { limits: { heldMaxBytes: 5000 } },
  );
  const ask = () =>
    fetch(`${gateway.url("m")}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "hello" }] }),
    });
  // Of two answers that never end one is refused, whichever comes first.
  const [one, other] = [ask(), ask()];
  const refused = await Promise.race([one, other]);
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /OVERLOADED/);
  for (const end of waiting) end();
  assert.deepEqual((await Promise.all([one, other])).map(({ status }) => status).sort(), [200, 503]);
  const third = ask();
  await up.received(3);
  waiting.at(-1)?.();
  assert.equal((await third).status, 200);
});
