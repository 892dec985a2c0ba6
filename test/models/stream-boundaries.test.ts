/** Every recorded stream, cut in two at every byte: the caller gets the same bytes and the meter the same counts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BodyPipe, eventPipe, translatedEventPipe } from "../../src/models/body-pipes.ts";
import { anthropicChat } from "../../src/models/providers/anthropic/chat.ts";
import { anthropicMessages } from "../../src/models/providers/anthropic/dialect.ts";
import { cohereChat } from "../../src/models/providers/cohere/dialect.ts";
import { geminiChat } from "../../src/models/providers/gemini/chat.ts";
import { geminiGenerate } from "../../src/models/providers/gemini/dialect.ts";
import { openaiChat, openaiResponses } from "../../src/models/providers/openai/dialects.ts";
import { UsageMeter } from "../../src/models/usage-meter.ts";
import { eventText, goldens, parseEvents } from "./golden.ts";

const context = { model: "m", nowMs: 0 };

type MakePipe = (meter: UsageMeter) => BodyPipe;

const PIPES: [string, typeof openaiChat, MakePipe][] = [
  ["openai-like/stream", openaiChat, (meter) => eventPipe(openaiChat, meter, true)],
  ["openai-like/stream-with-usage", openaiChat, (meter) => eventPipe(openaiChat, meter, false)],
  ["openai/responses-stream", openaiResponses, (meter) => eventPipe(openaiResponses, meter, false)],
  ["anthropic/native-stream", anthropicMessages, (meter) => eventPipe(anthropicMessages, meter, false)],
  ["cohere/native-stream", cohereChat, (meter) => eventPipe(cohereChat, meter, false)],
  ["gemini/native-stream", geminiGenerate, (meter) => eventPipe(geminiGenerate, meter, false)],
  ["anthropic/stream-tools", anthropicMessages, (meter) => translatedEventPipe(anthropicChat, meter, context, true)],
  ["gemini/stream-tools", geminiGenerate, (meter) => translatedEventPipe(geminiChat, meter, context, true)],
];

function run(make: MakePipe, dialect: typeof openaiChat, pieces: Buffer[]): { text: string; usage: unknown } {
  const meter = new UsageMeter(dialect);
  const pipe = make(meter);
  const out = [...pieces.map((piece) => pipe.chunk(piece)), pipe.end()];
  const text = Buffer.concat(out.map((part) => Buffer.from(part ?? ""))).toString("utf8");
  return { text, usage: meter.result(() => 0) };
}

for (const [name, dialect, make] of PIPES) {
  test(`${name} is the same for a cut at every byte`, () => {
    const [set = ""] = name.split("/");
    const recorded = goldens(set).find((each) => each.name === name);
    assert.ok(recorded?.golden.answer.events);
    // Callers see Windows line ends and comments too.
    const text = `: comment\n\n${eventText(recorded.golden.answer.events)}`;
    for (const wire of [text, text.replaceAll("\n", "\r\n")]) {
      const bytes = Buffer.from(wire);
      const whole = run(make, dialect, [bytes]);
      assert.ok(parseEvents(whole.text.replaceAll("\r\n", "\n")).length > 1);
      for (let cut = 1; cut < bytes.length; cut += 1) {
        assert.deepEqual(run(make, dialect, [bytes.subarray(0, cut), bytes.subarray(cut)]), whole, `cut at ${cut}`);
      }
    }
  });
}

test("an event too long to hold is passed on in pieces, and a failure after it is still readable", () => {
  const pipe = eventPipe(openaiChat, new UsageMeter(openaiChat), true);
  const huge = Buffer.alloc(3 * 1024 * 1024, "x");
  const first = pipe.chunk(Buffer.concat([Buffer.from("data: "), huge]));
  assert.equal(first?.length, huge.length + 6);
  const failure = String(pipe.fail({ code: "X", message: "gone", status: 502 }));
  assert.ok(failure.startsWith("\n\ndata: {"));
});

test("the counts at the end of an event too long to hold are read", () => {
  const image = "x".repeat(3 * 1024 * 1024);
  const usage = { input_tokens: 12, output_tokens: 4160, total_tokens: 4172 };
  const event = { type: "response.completed", response: { id: "r", output: [{ result: image }], usage } };
  const bytes = Buffer.from(`event: response.completed\ndata: ${JSON.stringify(event)}\n\n`);
  for (const at of [bytes.length - 2, bytes.length - 40, bytes.length - 90, 1_100_000]) {
    const passed = run((meter) => eventPipe(openaiResponses, meter, false), openaiResponses, [
      bytes.subarray(0, at),
      bytes.subarray(at),
    ]);
    assert.equal(passed.text.length, bytes.length);
    assert.partialDeepStrictEqual(passed.usage, { usage: { inputTokens: 12, outputTokens: 4160 }, estimated: false });
  }
});
