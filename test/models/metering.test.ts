/** What is metered is what providers reported, once, whatever happens on the way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../properties.ts";
import { startGateway, type TestGateway } from "./gateway-harness.ts";
import { sendJson, startEvents, startUpstream } from "./upstream-server.ts";

interface Plan {
  id: number;
  how: "json" | "stream" | "abort";
  asksUsage: boolean;
  input: number;
  output: number;
  /** Failures before the answer: as many as the gateway forgives, or one more. */
  failures: number;
  failure: "status" | "reset";
}

const plan = fc.record({
  how: fc.constantFrom("json" as const, "stream" as const, "abort" as const),
  asksUsage: fc.boolean(),
  input: fc.integer({ min: 1, max: 100_000 }),
  output: fc.integer({ min: 1, max: 100_000 }),
  failures: fc.integer({ min: 0, max: 3 }),
  failure: fc.constantFrom("status" as const, "reset" as const),
});

const usageOf = ({ input, output }: Plan) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

const chunk = (delta: unknown, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;

/** A provider that follows the plan in each request and keeps the sum of what it reported. */
async function startPlanned() {
  const reported = { input: 0, output: 0 };
  const failuresLeft = new Map<number, number>();
  const report = ({ input, output }: Plan): void => {
    reported.input += input;
    reported.output += output;
  };
  const upstream = await startUpstream((request, res) => {
    const planned = request.json.plan as Plan;
    const left = failuresLeft.get(planned.id) ?? planned.failures;
    failuresLeft.set(planned.id, left - 1);
    if (left > 0) {
      if (planned.failure === "reset") res.destroy();
      else sendJson(res, { error: { message: "try again" } }, 503);
      return;
    }
    report(planned);
    if (planned.how === "json") return sendJson(res, { id: "c", choices: [], usage: usageOf(planned) });
    startEvents(res);
    if (planned.how === "abort") {
      // It reports as it goes, and then waits for a caller who will not stay.
      res.write(chunk({ content: "never finished" }, { usage: usageOf(planned) }));
      return;
    }
    assert.deepEqual(request.json.stream_options, { include_usage: true });
    res.write(chunk({ content: "Hello" }) + chunk({}, { usage: null }));
    res.end(`data: ${JSON.stringify({ id: "c", choices: [], usage: usageOf(planned) })}\n\ndata: [DONE]\n\n`);
  });
  return { upstream, reported };
}

async function ask(gateway: TestGateway, planned: Plan): Promise<void> {
  const abort = new AbortController();
  const response = await fetch(`${gateway.url("m")}/v1/chat/completions`, {
    method: "POST",
    signal: abort.signal,
    body: JSON.stringify({
      messages: [],
      plan: planned,
      ...(planned.how === "json" ? {} : { stream: true }),
      ...(planned.asksUsage && planned.how !== "json" ? { stream_options: { include_usage: true } } : {}),
    }),
  });
  if (planned.how === "abort" && response.ok) {
    await response.body?.getReader().read();
    abort.abort();
    return;
  }
  const text = await response.text();
  if (planned.how === "stream" && response.ok) assert.equal(text.includes('"choices":[],"usage"'), planned.asksUsage);
}

test("the sum of metered tokens is the sum of reported ones under concurrency, aborts and retries", async () => {
  const { upstream, reported } = await startPlanned();
  await using _upstream = upstream;
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  let ids = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 12 }), async (plans) => {
      const planned = plans.map((each) => {
        ids += 1;
        return { ...each, id: ids };
      });
      await Promise.all(planned.map((each) => ask(gateway, each)));
      await gateway.recorded(ids);
      assert.equal(gateway.usage.length, ids, "one entry for each request");
      const metered = gateway.usage.reduce(
        (sum, event) => ({ input: sum.input + event.inputTokens, output: sum.output + event.outputTokens }),
        { input: 0, output: 0 },
      );
      assert.deepEqual(metered, reported);
      assert.ok(gateway.usage.every((event) => !event.estimated));
    }),
    { numRuns: 40 },
  );
});

test("an abort before anything was reported leaves an estimate that says so", async () => {
  await using upstream = await startUpstream((_request, res) => startEvents(res));
  await using gateway = await startGateway({ m: { type: "anthropic", baseUrl: upstream.baseUrl } });
  const abort = new AbortController();
  const body = JSON.stringify({
    max_tokens: 10,
    stream: true,
    messages: [{ role: "user", content: "x".repeat(4000) }],
  });
  await fetch(`${gateway.url("m")}/v1/messages`, { method: "POST", signal: abort.signal, body });
  abort.abort();
  const [event] = await gateway.recorded(1);
  assert.equal(event?.estimated, true);
  assert.ok((event?.inputTokens ?? 0) > 1000 && (event?.inputTokens ?? 0) < 1100, `${event?.inputTokens} tokens`);
});

test("an inline image is not counted as text", async () => {
  await using upstream = await startUpstream((_request, res) => startEvents(res));
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  const abort = new AbortController();
  const url = `data:image/png;base64,${Buffer.alloc(600_000, 7).toString("base64")}`;
  const content = [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url } },
  ];
  const body = JSON.stringify({ stream: true, messages: [{ role: "user", content }] });
  await fetch(`${gateway.url("m")}/v1/chat/completions`, { method: "POST", signal: abort.signal, body });
  abort.abort();
  const [event] = await gateway.recorded(1);
  assert.ok((event?.inputTokens ?? 0) < 2000, `${event?.inputTokens} tokens`);
});

test("costs follow the model's own prices, the book, or are marked as unknown", async () => {
  await using upstream = await startUpstream((_request, res) =>
    sendJson(res, {
      choices: [],
      usage: { prompt_tokens: 1000, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 400 } },
    }),
  );
  const at = { baseUrl: upstream.baseUrl };
  await using gateway = await startGateway({
    listed: { type: "openai", model: "gpt-4o-mini-2024-07-18", ...at },
    own: { type: "openai", model: "gpt-4o-mini", prices: { input: "1", output: "2" }, ...at },
    unknown: { type: "openai-compatible", model: "my-finetune", ...at },
  });
  for (const model of ["listed", "own", "unknown"]) {
    await fetch(`${gateway.url(model)}/v1/chat/completions`, { method: "POST", body: '{"messages":[]}' });
  }
  assert.deepEqual(
    (await gateway.recorded(3)).map((event) => [event.costNanoUsd, event.priced]),
    [
      // 600 x 0.15 + 400 x 0.075 + 100 x 0.60 USD per million
      [90_000 + 30_000 + 60_000, true],
      [1_000_000 + 200_000, true],
      [0, false],
    ],
  );
});

test("who has the whole answer has been counted before, by the ledger and by the caps", async () => {
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  let endStream = (): void => undefined;
  await using upstream = await startUpstream((request, res) => {
    if (request.json.stream !== true) return sendJson(res, { id: "c", choices: [], usage });
    startEvents(res);
    res.write(`${chunk({ content: "Hi" })}data: ${JSON.stringify({ id: "c", choices: [], usage })}\n\n`);
    res.write("data: [DONE]\n\n");
    endStream = () => res.end();
  });
  const events: string[] = [];
  const told = (how: string) => (event: { outputTokens: number }) => void events.push(`${how} ${event.outputTokens}`);
  const settle = async ({ output }: { output: number }): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 30));
    events.push(`settled ${output}`);
  };
  const policies = [{ name: "cap", type: "maxToken", maxTokens: { granularity: "day", total: 100 } }];
  await using gateway = await startGateway(
    { m: { type: "openai", baseUrl: upstream.baseUrl, policies } },
    {
      usage: { note: told("noted"), record: told("recorded") },
      budget: {
        reserve: async () => ({ reservation: { settle, release: async () => undefined } }),
        spent: async () => null,
      },
    },
  );
  const ask = (stream: boolean) =>
    fetch(`${gateway.url("m")}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: [], stream }),
    });

  await (await ask(false)).text();
  assert.deepEqual(events.splice(0), ["recorded 2", "settled 2"]);

  let text = "";
  for await (const part of (await ask(true)).body ?? []) {
    text += Buffer.from(part).toString();
    if (!text.includes("[DONE]") || events.length > 1) continue;
    assert.deepEqual(events, ["noted 2"]);
    endStream();
  }
  assert.deepEqual(events, ["noted 2", "recorded 2", "settled 2"]);
});
