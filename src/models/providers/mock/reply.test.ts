import assert from "node:assert/strict";
import { test } from "node:test";
import { fromChat } from "./conversation.ts";
import { answerMock } from "./provider.ts";
import { replyTo } from "./reply.ts";
import { sampleOf } from "./schema-sample.ts";

const tool = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] } },
});
const reply = (content: string, more: object = {}) =>
  replyTo(fromChat({ messages: [{ role: "user", content }], ...more }));

test("it says the last message again, one word a piece", () => {
  assert.deepEqual(reply("one two  three ").pieces, ["one", " two", "  three", " "]);
  assert.equal(reply("one two  three ").pieces.join(""), "one two  three ");
  assert.deepEqual(reply("").pieces.join(""), "(nothing to echo)");
});

test("it stops where it is told to", () => {
  const short = reply("one two three", { max_tokens: 2 });
  assert.deepEqual([short.pieces, short.truncated, short.usage.outputTokens], [["one", " two"], true, 2]);
});

test("it calls the tool the text names, or the one it must", () => {
  const tools = [tool("search"), tool("fetch")];
  assert.deepEqual(reply("please fetch it", { tools }).call, { name: "fetch", args: '{"q":"please fetch it"}' });
  assert.deepEqual(reply('fetch {"q":1}', { tools }).call, { name: "fetch", args: '{"q":1}' });
  assert.equal(reply("hello", { tools }).call, null);
  assert.equal(reply("hello", { tools, tool_choice: "required" }).call?.name, "search");
  const named = { type: "function", function: { name: "fetch" } };
  assert.equal(reply("hello", { tools, tool_choice: named }).call?.name, "fetch");
});

test("it never answers a tool's result with another call", () => {
  const messages = [{ role: "tool", tool_call_id: "1", content: "fetch done" }];
  const after = replyTo(fromChat({ messages, tools: [tool("fetch")], tool_choice: "required" }));
  assert.deepEqual([after.call, after.pieces.join("")], [null, "fetch done"]);
});

test("a sample follows its schema", () => {
  const schema = {
    type: "object",
    required: ["a", "b", "c", "d", "e", "f"],
    properties: {
      a: { type: "string" },
      b: { type: "integer", minimum: 7 },
      c: { type: "array", items: { type: "boolean" } },
      d: { enum: ["x", "y"] },
      e: { anyOf: [{ type: "null" }, { type: "string" }] },
      f: { const: 3 },
    },
  };
  assert.deepEqual(sampleOf(schema, "t"), { a: "t", b: 7, c: [true], d: "x", e: null, f: 3 });
  const endless: Record<string, unknown> = { type: "object", required: ["next"] };
  endless.properties = { next: endless };
  assert.ok(JSON.stringify(sampleOf(endless, "t")).length < 200);
});

test("a sample of many strings repeats a long text only so often", () => {
  const names = Array.from({ length: 300 }, (_, index) => `n${index}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  const text = "word ".repeat(4000);
  const sample = sampleOf({ type: "object", properties }, text) as Record<string, string>;
  assert.equal(sample.n0, text);
  assert.ok(JSON.stringify(sample).length < 1_100_000);
  const long = "x".repeat(1_500_000);
  assert.equal(sampleOf({ type: "string" }, long), long);
});

const embed = (body: object) => {
  const { status, chunks } = answerMock({
    method: "POST",
    path: "/v1/embeddings",
    body: Buffer.from(JSON.stringify(body)),
    nowMs: 0,
  });
  const answer = JSON.parse(chunks.join(""));
  return { status, message: answer.error?.message, vectors: answer.data?.map((one: Embedded) => one.embedding) };
};
type Embedded = { embedding: number[] };

test("embeddings of the same words are equal, others are far apart", () => {
  const { vectors } = embed({
    input: ["What is the capital of France?", "what is the capital  of france", "Why?", "?!"],
  });
  const [asked, again, other, marks] = vectors as [number[], number[], number[], number[]];
  const similarity = (one: number[]) => one.reduce((sum, value, index) => sum + value * (asked[index] ?? 0), 0);
  assert.deepEqual(asked, again);
  assert.ok(Math.abs(similarity(asked) - 1) < 1e-5);
  assert.ok(similarity(other) < 0.5 && similarity(marks) < 0.5);
});

test("embeddings beyond a bound are refused, because every other request would wait for them", () => {
  assert.equal(embed({ input: Array(2048).fill("a") }).vectors.length, 2048);
  assert.match(embed({ input: Array(2049).fill("a") }).message, /at most 2048 embeddings/);
  assert.equal(embed({ input: Array(64).fill("a"), dimensions: 4096 }).status, 200);
  const { status, message } = embed({ input: Array(65).fill("a"), dimensions: 4096 });
  assert.equal(status, 400);
  assert.match(message, /these are 65 embeddings of 4096 numbers/);
  assert.equal(embed({ input: Array.from({ length: 5000 }, (_, index) => index) }).vectors.length, 1);
});

test("it says that it has no files and batches, whatever is asked of them", () => {
  const asked = { body: Buffer.from("--b\r\n"), nowMs: 0 };
  for (const [method, path] of [
    ["POST", "/v1/files"],
    ["GET", "/v1/files/file_1/content"],
    ["GET", "/v1/batches?limit=2"],
    ["POST", "/v1/batches"],
  ] as const) {
    const { status, chunks } = answerMock({ ...asked, method, path });
    assert.deepEqual([status, /has no files and batches/.test(chunks.join(""))], [404, true], path);
  }
  assert.equal(answerMock({ ...asked, method: "POST", path: "/v1/chat/completions" }).status, 400);
});
