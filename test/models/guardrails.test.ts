/** Redaction: what a model's guardrails name never leaves for a provider, on no way around either. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GuardrailRules } from "../../src/contract/model-guardrails.ts";
import { startGateway, type TestGateway } from "./gateway-harness.ts";
import { sendJson, startEvents, startUpstream } from "./upstream-server.ts";

const ALL: GuardrailRules = {
  redact: { patterns: ["email", "card", "iban", "ipv4", "us-ssn", "api-key"], words: ["Project Falcon", "c++ (x)"] },
};

const startProvider = () =>
  startUpstream((request, res) => {
    if (request.json.stream !== true) return sendJson(res, { id: "c", choices: [], content: [] });
    startEvents(res);
    res.end("data: [DONE]\n\n");
  });

const post = (gateway: TestGateway, body: string, path = "/v1/chat/completions", contentType = "application/json") =>
  fetch(`${gateway.url("m")}${path}`, { method: "POST", headers: { "content-type": contentType }, body });

const saying = (content: string, more = {}): string =>
  JSON.stringify({ messages: [{ role: "user", content }], ...more });

/** A text, and what is left of it. */
const TEXTS: [string, string][] = [
  ["write to ann.o+x@mail.example.org, please", "write to [EMAIL], please"],
  ["Grüße an jörg@bücher.example!", "Grüße an [EMAIL]!"],
  ["card 4111 1111 1111 1111, or 4111111111111111.", "card [CARD], or [CARD]."],
  ["12 4111-1111-1111-1111 99", "12 [CARD] 99"],
  ["amex 3782 822463 10005", "amex [CARD]"],
  ["order 4111 1111 1111 1112 and 0000 0000 0000 0000", "order 4111 1111 1111 1112 and 0000 0000 0000 0000"],
  ["DE89 3704 0044 0532 0130 00 IS MINE", "[IBAN] IS MINE"],
  ["GB82WEST12345698765432; DE00 3704 0044 0532 0130 00", "[IBAN]; DE00 3704 0044 0532 0130 00"],
  ["host 10.1.2.3. Version 1.2.3.4.5, 300.1.1.1", "host [IPV4]. Version 1.2.3.4.5, 300.1.1.1"],
  ["ssn 078-05-1120", "ssn [US-SSN]"],
  ["key sk-proj-abcdefghijklmnop1234 task-force", "key [API-KEY] task-force"],
  [`AKIA${"A1B2".repeat(4)} and ghp_${"a1".repeat(18)}`, "[API-KEY] and [API-KEY]"],
  ["-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAA=\n-----END RSA PRIVATE KEY----- end", "[API-KEY] end"],
  ["about PROJECT falcon in c++ (x)", "about [REDACTED] in [REDACTED]"],
  ["nothing to hide: 1,234,567.89 on 2026-11-16", "nothing to hide: 1,234,567.89 on 2026-11-16"],
];

test("each pattern replaces what it names and nothing that only looks like it", async () => {
  await using up = await startProvider();
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, guardrails: ALL } });
  for (const [index, [text, expected]] of TEXTS.entries()) {
    const answer = await post(gateway, saying(text));
    const replaced = expected.split(/\[[A-Z]/).length - 1;
    assert.equal(answer.headers.get("x-service-redacted"), replaced === 0 ? null : String(replaced), text);
    await answer.text();
    const sent = up.requests[index]?.json.messages as { content: string }[] | undefined;
    assert.equal(sent?.[0]?.content, expected);
  }
});

test("escapes, depth, tools, streams and other APIs are no way around, and the rest of a body stays as it is", async () => {
  await using up = await startProvider();
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, guardrails: ALL } });
  const hidden = ["a\\u0040b.example", "\\u0061@b.example", 'say \\"hi\\" to a@b.example'];
  for (const text of hidden) await post(gateway, `{"seed": 1.0, "messages":[{"role":"user","content":"${text}"}]}`);
  await post(
    gateway,
    saying("x", { tools: [{ function: { parameters: { default: ["a@b.example"] } } }], stream: true }),
  );
  await post(gateway, JSON.stringify({ input: "a@b.example" }), "/v1/responses");
  await post(gateway, JSON.stringify({ input: ["a@b.example"] }), "/v1/embeddings");
  await post(gateway, JSON.stringify({ messages: [{ role: "user", content: "a@b.example" }] }), "/v1/messages");
  assert.equal(up.requests.length, 7);
  for (const { body, url } of up.requests) {
    assert.match(body, /\[EMAIL\]/, url);
    assert.doesNotMatch(body, /b\.example/, url);
  }
  assert.match(up.requests[0]?.body ?? "", /^\{"seed": 1\.0/, "numbers keep their spelling");
});

test("a fallback and a member of a balance get what the asked model lets pass, and their own rules hold too", async () => {
  const emails: GuardrailRules = { redact: { patterns: ["email"] } };
  const words: GuardrailRules = { redact: { words: ["falcon"] } };
  await using down = await startUpstream((_, res) => sendJson(res, { error: { message: "no" } }, 503));
  await using up = await startProvider();
  const spare = { type: "openai", baseUrl: up.baseUrl, guardrails: words };
  const own = { type: "openai", baseUrl: down.baseUrl, guardrails: emails };
  for (const m of [
    { ...own, fallbacks: ["spare"] },
    { ...own, balance: { weight: 0, models: [{ name: "spare" }] } },
  ]) {
    await using gateway = await startGateway({ m, spare });
    const answer = await post(gateway, saying("falcon: a@b.example"));
    assert.equal(answer.headers.get("x-service-model"), "spare");
    assert.equal(answer.headers.get("x-service-redacted"), "2");
    await answer.text();
  }
  for (const { json } of up.requests) {
    assert.deepEqual(json.messages, [{ role: "user", content: "[REDACTED]: [EMAIL]" }]);
  }
  assert.doesNotMatch(down.requests.map(({ body }) => body).join(""), /b\.example/);
});

test("what cannot be redacted is refused and goes nowhere; images pass as they are", async () => {
  await using up = await startProvider();
  await using gateway = await startGateway({
    m: { type: "openai", baseUrl: up.baseUrl, guardrails: ALL, fallbacks: ["spare"] },
    spare: { type: "openai", baseUrl: up.baseUrl },
  });
  const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\na@b.example\r\n--b--\r\n';
  const refusals: [string, string, string][] = [
    [form, "/v1/files", "multipart/form-data; boundary=b"],
    ["a@b.example", "/v1/files", "text/plain"],
    [saying("word ".repeat(1024 * 1024)), "/v1/chat/completions", "application/json"],
  ];
  for (const [body, path, type] of refusals) {
    const answer = await post(gateway, body, path, type);
    assert.equal(answer.status, 403, path);
    const { error } = JSON.parse(await answer.text()) as { error: { code: string; message: string; action: string } };
    assert.equal(error.code, "POLICY_VIOLATION");
    for (const text of [error.message, error.action]) assert.match(text, /spec\.guardrails/);
  }
  assert.equal(up.requests.length, 0);
  const image = `data:image/png;base64,${Buffer.alloc(6_000_000, "4111").toString("base64")}`;
  const answer = await post(gateway, saying("look", { image_url: image }));
  assert.equal(answer.status, 200);
  assert.equal(up.requests[0]?.json.image_url, image);
});

test("kept answers are found by what was sent", async () => {
  await using up = await startProvider();
  const cache = { ttlSeconds: 60 };
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, guardrails: ALL, cache } });
  const first = await post(gateway, saying("hello a@b.example"));
  const second = await post(gateway, saying("hello other@b.example"));
  assert.deepEqual(
    [first, second].map(({ headers }) => headers.get("x-service-cache")),
    ["miss", "hit"],
  );
});
