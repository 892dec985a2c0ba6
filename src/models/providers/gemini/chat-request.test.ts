import assert from "node:assert/strict";
import { test } from "node:test";
import { parseChatRequest } from "../openai/chat-request.ts";
import { toGenerateRequest } from "./chat-request.ts";

const call = (id: string, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "look", arguments: "{}" },
  ...more,
});

function signatures(model: string, ...calls: object[]): unknown[] {
  const messages = [
    { role: "user", content: "Look twice." },
    { role: "assistant", content: null, tool_calls: calls },
    { role: "tool", tool_call_id: "a", content: "nothing" },
  ];
  const { contents } = toGenerateRequest(parseChatRequest(Buffer.from(JSON.stringify({ messages }))), model);
  const parts = (contents as { parts: { functionCall?: unknown; thoughtSignature?: string }[] }[])[1]?.parts ?? [];
  return parts.map(({ thoughtSignature }) => thoughtSignature);
}

test("calls that come without a signature are told to be so, where models insist on one", () => {
  const signed = call("a", { extra_content: { google: { thought_signature: "c2ln" } } });
  assert.deepEqual(signatures("gemini-3.5-flash", signed, call("b")), ["c2ln", undefined]);
  assert.deepEqual(signatures("gemini-3.5-flash", call("a"), call("b")), [
    "skip_thought_signature_validator",
    undefined,
  ]);
  assert.deepEqual(signatures("gemini-2.5-flash", call("a"), call("b")), [undefined, undefined]);
});
