/** Webhooks of guardrails, and answers that are redacted: what they refuse does not get through, on no way around. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { GuardrailRules } from "../../src/contract/model-guardrails.ts";
import { createOutbound } from "../../src/lib/network/outbound-http.ts";
import { verifyWebhook } from "../../src/lib/network/webhook-signature.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { HeldText } from "../../src/models/guardrails/held-text.ts";
import { PATTERNS } from "../../src/models/guardrails/patterns.ts";
import { redactText } from "../../src/models/guardrails/redaction.ts";
import { startGateway, type TestGateway, type TestModel } from "./gateway-harness.ts";
import { cut, sendJson, sendPieces, startEvents, startUpstream } from "./upstream-server.ts";

const SECRET = "a secret of the webhook";
const USAGE = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };

interface Asked {
  event: string;
  workspace: string;
  model: string;
  path: string;
  subject: { type: string; id: string };
  session: string | null;
  request: { messages?: { content: string }[] };
  response?: { choices: { message: { content: string } }[] };
  events?: { event?: string; data: unknown }[];
}

type Decide = (asked: Asked) => object | number | "silent";

/** A receiver that checks every signature and answers as it is told. */
async function startWebhook(decide: Decide) {
  const asked: Asked[] = [];
  const server = await startUpstream((request, res) => {
    const header = (name: string): string => String(request.headers[name]);
    const given = { signature: header("x-service-signature"), timestamp: header("x-service-timestamp") };
    if (!verifyWebhook(SECRET, request.body, given, systemClock.now())) return sendJson(res, {}, 401);
    asked.push(request.json as unknown as Asked);
    const answer = decide(request.json as unknown as Asked);
    if (answer === "silent") return;
    if (typeof answer === "number") return sendJson(res, {}, answer);
    sendJson(res, answer);
  });
  return { ...server, asked, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const startProvider = (text = "the answer") =>
  startUpstream(async (request, res) => {
    if (request.json.stream !== true)
      return sendJson(res, { id: "c", choices: [{ index: 0, message: { content: text } }], usage: USAGE });
    startEvents(res);
    await sendPieces(res, chatEvents(text.match(/.{1,5}/gsu) ?? []));
    res.end(`data: ${JSON.stringify({ id: "c", choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`);
  });

const chatEvents = (pieces: readonly string[]): string[] =>
  pieces.map((content) => `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }] })}\n\n`);

async function gatewayWith(
  t: TestContext,
  decide: Decide,
  more: Partial<NonNullable<GuardrailRules["webhook"]>> = {},
  models: (m: TestModel) => Record<string, TestModel> = (m) => ({ m }),
  text?: string,
) {
  const hook = await startWebhook(decide);
  const up = await startProvider(text);
  const guardrails: GuardrailRules = { webhook: { url: `${hook.baseUrl}/hook`, secret: SECRET, ...more } };
  const gateway = await startGateway(models({ type: "openai", baseUrl: up.baseUrl, guardrails }));
  t.after(async () => {
    for (const one of [gateway, up, hook]) await one[Symbol.asyncDispose]();
  });
  return { gateway, up, hook };
}

async function ask(gateway: TestGateway, body: object = {}, path = "/v1/chat/completions", model = "m") {
  const answer = await fetch(`${gateway.url(model)}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-service-session-id": "run-1" },
    body: JSON.stringify({ messages: [{ role: "user", content: "hello" }], ...body }),
  });
  return { status: answer.status, text: await answer.text() };
}

const chatText = (stream: string): string =>
  stream
    .split("\n\n")
    .filter((block) => block.startsWith("data: {"))
    .map((block) => (JSON.parse(block.slice(6)) as { choices: { delta?: { content?: string } }[] }).choices[0])
    .map((choice) => choice?.delta?.content ?? "")
    .join("");

test("a webhook sees the request and the answer, signed, and what it allows passes", async (t) => {
  const { gateway, up, hook } = await gatewayWith(t, () => ({ action: "allow" }));
  const whole = await ask(gateway);
  assert.equal(whole.status, 200);
  const streamed = await ask(gateway, { stream: true });
  assert.match(streamed.text, /\[DONE\]\n\n$/);
  assert.deepEqual(
    hook.asked.map(({ event, workspace, model, path, session }) => [event, workspace, model, path, session]),
    ["request", "response", "request", "response"].map((event) => [
      event,
      "acme",
      "m",
      "/v1/chat/completions",
      "run-1",
    ]),
  );
  const [first, second, , fourth] = hook.asked;
  assert.deepEqual(first?.subject, { id: "key-1", type: "api_key" });
  assert.equal(first?.request.messages?.[0]?.content, "hello");
  assert.equal(second?.response?.choices[0]?.message.content, "the answer");
  assert.equal(fourth?.events?.at(-1)?.data, "[DONE]");
  assert.equal(up.requests.length, 2);
  for (const { outcome, inputTokens } of await gateway.recorded(2))
    assert.deepEqual([outcome, inputTokens], ["completed", 5]);
});

test("a refused request goes nowhere, not to a fallback or a member of a balance either", async (t) => {
  const others = (m: TestModel): Record<string, TestModel> => ({
    m: { ...m, fallbacks: ["spare"] },
    shared: { ...m, balance: { models: [{ name: "spare" }, { name: "third" }] } },
    spare: { type: m.type, baseUrl: m.baseUrl ?? "" },
    third: { type: m.type, baseUrl: m.baseUrl ?? "" },
  });
  const refuse = { action: "refuse", message: "no \u001b[2Jsecrets" };
  const { gateway, up, hook } = await gatewayWith(t, () => refuse, {}, others);
  const { status, text } = await ask(gateway);
  assert.equal(status, 403);
  assert.match(text, /POLICY_VIOLATION/);
  assert.match(text, /refused the request: no \uFFFD\[2Jsecrets/);
  assert.equal((await ask(gateway, {}, "/v1/chat/completions", "shared")).status, 403);
  assert.equal(up.requests.length, 0);
  assert.equal(hook.asked.length, 2, "one question a request");
});

test("a refused answer reaches nobody, is counted, and is not asked for again", async (t) => {
  const decide: Decide = ({ event }) => ({ action: event === "request" ? "allow" : "refuse" });
  const members = (m: TestModel) => ({ m: { ...m, balance: { models: [{ name: "other" }] } }, other: m });
  const { gateway, up } = await gatewayWith(t, decide, {}, members);
  for (const stream of [false, true]) {
    const { status, text } = await ask(gateway, { stream });
    assert.equal(status, 403);
    assert.match(text, /refused the answer\./);
    assert.doesNotMatch(text, /the answer"/);
  }
  assert.equal(up.requests.length, 2);
  for (const { outcome, inputTokens, outputTokens } of await gateway.recorded(2))
    assert.deepEqual([outcome, inputTokens, outputTokens], ["interrupted", 5, 7]);
});

test("a webhook replaces the request, the answer, and the events of a stream", async (t) => {
  const decide: Decide = ({ event, request, events }) => {
    if (event === "request")
      return { action: "replace", request: { ...request, messages: [{ role: "user", content: "mild" }] } };
    if (!events) return { action: "replace", response: { replaced: true } };
    const shown = { id: "c", choices: [{ index: 0, delta: { content: "mild" } }] };
    return { action: "replace", events: [{ data: shown }, { data: "[DONE]", event: "bad\nname" }] };
  };
  const { gateway, up } = await gatewayWith(t, decide);
  assert.deepEqual(JSON.parse((await ask(gateway)).text), { replaced: true });
  const streamed = await ask(gateway, { stream: true });
  assert.equal(chatText(streamed.text), "mild");
  assert.match(streamed.text, /\n\ndata: \[DONE\]\n\n$/);
  for (const { json } of up.requests) assert.deepEqual(json.messages, [{ role: "user", content: "mild" }]);
});

test("a webhook that fails refuses, or lets pass where the model says so", async (t) => {
  const failures: [Decide, RegExp][] = [
    [() => 500, /answered 500/],
    [() => ({ action: "perhaps" }), /no `action`/],
    [() => ({ action: "replace" }), /has no `request`/],
    [() => "silent", /did not answer in time/],
  ];
  for (const [decide, why] of failures) {
    const { gateway, up } = await gatewayWith(t, decide, { timeoutMs: 200 });
    const { status, text } = await ask(gateway);
    assert.equal(status, 503);
    assert.match(text, /GUARDRAIL_UNAVAILABLE/);
    assert.match(text, why);
    assert.equal(up.requests.length, 0);
  }
  const { gateway, up } = await gatewayWith(t, () => 500, { onFailure: "allow" });
  assert.equal((await ask(gateway)).status, 200);
  assert.equal(up.requests.length, 1);
});

test("a webhook at an address of the inner network is not called, and a redirect is not followed", async (t) => {
  await using inner = await startUpstream((_, res) => sendJson(res, { action: "allow" }));
  await using up = await startProvider();
  await using redirecting = await startUpstream((_, res) => {
    res.writeHead(307, { location: inner.baseUrl }).end();
  });
  const outbound = createOutbound({ privateAddresses: false });
  t.after(() => outbound.stop());
  const model = (url: string): TestModel => ({
    ...{ type: "openai", baseUrl: up.baseUrl },
    guardrails: { webhook: { url, secret: SECRET } },
  });
  const port = new URL(inner.baseUrl).port;
  await using strict = await startGateway(
    {
      a: model(inner.baseUrl),
      b: model(`http://localhost:${port}`),
      c: model("http://169.254.169.254/"),
      d: model(`http://[::ffff:127.0.0.1]:${port}`),
    },
    { outbound },
  );
  for (const name of ["a", "b", "c", "d"]) {
    const { status, text } = await ask(strict, {}, "/v1/chat/completions", name);
    assert.equal(status, 503, name);
    assert.doesNotMatch(text, /localhost|127\.0|169\.254/, "callers of the model are not told where its webhook is");
  }
  await using open = await startGateway({ m: model(redirecting.baseUrl) });
  assert.match((await ask(open)).text, /answered 307/);
  assert.deepEqual([inner.requests.length, up.requests.length], [0, 0]);
});

test("the provider gets what the webhook saw, of doubled members too; forms are refused", async (t) => {
  const { gateway, up, hook } = await gatewayWith(t, () => ({ action: "allow" }), { events: ["request"] });
  const doubled = '{"messages":[{"role":"user","content":"bad"}],"messages":[{"role":"user","content":"good"}]}';
  const send = (body: string, type = "application/json", path = "/v1/chat/completions") =>
    fetch(`${gateway.url("m")}${path}`, { method: "POST", headers: { "content-type": type }, body });
  assert.equal((await send(doubled)).status, 200);
  assert.equal(hook.asked[0]?.request.messages?.[0]?.content, "good");
  assert.doesNotMatch(up.requests[0]?.body ?? "", /bad/);
  assert.equal((await send('{"a": [}, "messages": []}')).status, 400);
  const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n--b--\r\n';
  assert.equal((await send(form, "multipart/form-data; boundary=b", "/v1/files")).status, 403);
  assert.equal(up.requests.length, 1);
});

const REDACTED: GuardrailRules = {
  redact: { patterns: ["email", "card", "api-key"], words: ["Project Falcon"], answers: true },
};
const LEAKS = [
  "Write to ann.o+x@mail.example.org, or pay with 4111 1111 1111 1111 for project falcon, please.",
  `${"word ".repeat(60)}bob@b.example ${"more ".repeat(60)}sk-proj-abcdefghijklmnop1234 end`,
  `-----BEGIN PRIVATE KEY-----\n${"MIIBVQIBADAN".repeat(60)}\n-----END PRIVATE KEY----- after`,
];

test("answers are redacted, whole and in streams of any chunking, and the rest stays as it is", async () => {
  for (const text of LEAKS) {
    const { text: named } = redactText(text, [PATTERNS.email, PATTERNS.card, PATTERNS["api-key"]]);
    const expected = named.replace(/project falcon/gi, "[REDACTED]");
    await using up = await startProvider(text);
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, guardrails: REDACTED } });
    const whole = JSON.parse((await ask(gateway)).text) as { choices: { message: { content: string } }[] };
    assert.equal(whole.choices[0]?.message.content, expected);
    const { text: stream } = await ask(gateway, { stream: true });
    assert.equal(chatText(stream), expected);
    assert.match(stream, /\[DONE\]\n\n$/);
    for (const { outputTokens } of await gateway.recorded(2)) assert.equal(outputTokens, 7);
  }
});

test("answers of other APIs are redacted too: messages, responses, tools, and text that is told twice", async () => {
  const piece = (delta: object) =>
    `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index: 0, delta })}\n\n`;
  const messages =
    ["mail a", "@b.exam", "ple now"].map((text) => piece({ type: "text_delta", text })).join("") +
    'event: ping\ndata: {"type":"ping"}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n' +
    piece({ type: "input_json_delta", partial_json: '{"to":"a@b.example"}' }) +
    'event: message_stop\ndata: {"type":"message_stop"}\n\n';
  const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const said = { type: "response.output_text.delta", item_id: "i", output_index: 0, content_index: 0 };
  const responses =
    ["a@b", ".example", " told"].map((delta) => event({ ...said, delta } as typeof said)).join("") +
    event({ ...said, type: "response.output_text.done", text: "a@b.example told" } as typeof said) +
    event({
      type: "response.completed",
      response: { output: [{ content: [{ text: "a@b.example" }] }], usage: {} },
    } as never);
  for (const [type, path, stream] of [
    ["anthropic", "/v1/messages", messages],
    ["openai", "/v1/responses", responses],
  ] as const) {
    for (const size of [7, 1000]) {
      await using up = await startUpstream(async (_, res) => {
        startEvents(res);
        await sendPieces(res, cut(stream, size));
        res.end();
      });
      await using gateway = await startGateway({ m: { type, baseUrl: up.baseUrl, guardrails: REDACTED } });
      const { text } = await ask(gateway, { stream: true, input: "x" }, path);
      assert.doesNotMatch(text, /b\.example|a@b/, path);
      assert.equal(text.split("[EMAIL]").length - 1, type === "anthropic" ? 2 : 3, text);
      assert.equal(text.split("\n\n").length, stream.split("\n\n").length, "no event is lost");
    }
  }
});

test("an answer that cannot be looked at is refused", async () => {
  await using up = await startUpstream((_, res) => {
    res.writeHead(200, { "content-type": "audio/mpeg" }).end("a@b.example");
  });
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, guardrails: REDACTED } });
  const { status, text } = await ask(gateway, { input: "x" }, "/v1/audio/speech");
  assert.equal(status, 403);
  assert.match(text, /only JSON/);
});

test("a text in pieces is redacted as the whole text, wherever it is divided", () => {
  const patterns = [PATTERNS.email, PATTERNS.card, PATTERNS.iban, PATTERNS["api-key"]];
  const text = `${LEAKS.join(" ")} ${"x".repeat(3000)}@y.example DE89 3704 0044 0532 0130 00 ${"tail ".repeat(40)}`;
  for (const size of [1, 2, 3, 7, 31, 127, 128, 129, 1000]) {
    const held = new HeldText(patterns);
    const out: string[] = [];
    for (let at = 0; at < text.length; at += size) held.push(text.slice(at, at + size), (piece) => out.push(piece));
    held.end();
    assert.equal(out.join(""), redactText(text, patterns).text, String(size));
  }
});
