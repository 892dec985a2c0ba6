import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { DEFAULT_PRICES } from "./default-prices.ts";
import { costNanoUsd, createModelPriceBook, parsePriceTable } from "./price-book.ts";
import { priceTable } from "./price-table.ts";
import { NO_USAGE } from "./providers/token-usage.ts";

test("a cost is exact to the nano-dollar", () => {
  const prices = { input: "0.0375", output: "0.15", cachedInput: "0.01", cacheWrite: "0.05", cacheWriteHour: "0.075" };
  const usage = {
    ...NO_USAGE,
    inputTokens: 1000,
    cachedInputTokens: 300,
    cacheWriteTokens: 200,
    cacheWriteHourTokens: 50,
    outputTokens: 7,
  };
  // 500 x 37.5 + 300 x 10 + 150 x 50 + 50 x 75 + 7 x 150 nano-USD
  assert.equal(costNanoUsd(prices, usage), 18_750 + 3_000 + 7_500 + 3_750 + 1_050);
  assert.equal(costNanoUsd({ input: "0.1", output: "0.2" }, { ...NO_USAGE, inputTokens: 3, outputTokens: 1 }), 500);
});

test("beyond a length the whole request has the long rates", () => {
  const prices = { input: "1", output: "2", longContext: { overInputTokens: 100, input: "3", output: "4" } };
  assert.equal(costNanoUsd(prices, { ...NO_USAGE, inputTokens: 100, outputTokens: 1 }), 102_000);
  assert.equal(costNanoUsd(prices, { ...NO_USAGE, inputTokens: 101, outputTokens: 1 }), 307_000);
});

test("counts that contradict each other never make a negative price", () => {
  const prices = { input: "1", output: "1", cachedInput: "0", cacheWrite: "0" };
  assert.equal(costNanoUsd(prices, { ...NO_USAGE, inputTokens: 5, cachedInputTokens: 9, cacheWriteTokens: 9 }), 0);
});

test("no request costs more than a thousand dollars", () => {
  const prices = { input: "999999", output: "999999" };
  assert.equal(costNanoUsd(prices, { ...NO_USAGE, inputTokens: 100_000_000 }), 1e12);
});

test("a dated name has its family's price, an unknown one has none", () => {
  const book = createModelPriceBook();
  assert.deepEqual(book.pricesOf("openai", "gpt-4o-mini-2024-07-18"), DEFAULT_PRICES.openai?.["gpt-4o-mini"]);
  assert.deepEqual(
    book.pricesOf("anthropic", "claude-sonnet-4-5-20250929"),
    DEFAULT_PRICES.anthropic?.["claude-sonnet-4-5"],
  );
  assert.equal(book.pricesOf("openai", "gpt-4o-mini-tts"), null);
  assert.equal(book.pricesOf("nobody", "gpt-4o"), null);
});

test("a date that changed the price has a price of its own, and is nobody else's", () => {
  const book = createModelPriceBook();
  assert.equal(book.pricesOf("openai", "gpt-4o-2024-05-13")?.input, "5");
  assert.equal(book.pricesOf("openai", "gpt-4o-2024-08-06")?.input, "2.5");
  assert.equal(book.pricesOf("cohere", "command-r-08-2024")?.input, "0.15");
  for (const name of ["command-r-03-2024", "command-r"]) assert.equal(book.pricesOf("cohere", name), null);
  const own = createModelPriceBook(parsePriceTable('{"cohere":{"command-r":{"input":"1","output":"2"}}}'));
  for (const name of ["command-r", "command-r-08-2024"]) assert.equal(own.pricesOf("cohere", name)?.input, "1", name);
  assert.equal(book.pricesOf("openai", "constructor"), null);
});

test("the operator's table comes first", () => {
  const book = createModelPriceBook(parsePriceTable('{"openai":{"gpt-4o":{"input":"1","output":"2"}}}'));
  assert.deepEqual(book.pricesOf("openai", "gpt-4o"), { input: "1", output: "2" });
  assert.deepEqual(book.pricesOf("openai", "gpt-4.1"), DEFAULT_PRICES.openai?.["gpt-4.1"]);
  assert.throws(() => parsePriceTable('{"openai":{"gpt-4o":{"input":1,"output":"2"}}}'), /openai\.gpt-4o\.input/);
  assert.throws(() => parsePriceTable('{"openai":{"gpt-4o":{"input":"1","output":"2","typo":"3"}}}'), /typo/);
});

test("the operator's table spells providers and models as records do", () => {
  const price = { input: "1", output: "2" };
  const table = { google: { "models/Gemini-X": price }, vllm: { a: price }, ollama: { "Org/B": price } };
  const book = createModelPriceBook(parsePriceTable(JSON.stringify(table)));
  assert.deepEqual(book.pricesOf("gemini", "gemini-x"), price);
  for (const model of ["a", "Org/B"]) assert.deepEqual(book.pricesOf("openai-compatible", model), price);
  assert.throws(() => parsePriceTable('{"opnai":{}}'), /at opnai: there is no such provider/);
});

test("a star prices all models of a provider that are not named", () => {
  const book = createModelPriceBook(
    parsePriceTable('{"vllm":{"*":{"input":"1","output":"1"},"b":{"input":"2","output":"2"}}}'),
  );
  assert.equal(book.pricesOf("openai-compatible", "a")?.input, "1");
  assert.equal(book.pricesOf("openai-compatible", "b")?.input, "2");
  assert.equal(createModelPriceBook().pricesOf("mock", "whatever")?.input, "0");
});

test("every shipped price is well formed", () => {
  assert.equal(priceTable.safeParse(DEFAULT_PRICES).success, true);
});

test("the cost of a sum is the sum of the costs when no request is rounded", () => {
  const tokens = fc.nat(5_000_000);
  fc.assert(
    fc.property(tokens, tokens, fc.nat(99_999), (input, output, thousandths) => {
      const text = `${Math.floor(thousandths / 1000)}.${String(thousandths % 1000).padStart(3, "0")}`;
      const whole = costNanoUsd(
        { input: text, output: text },
        { ...NO_USAGE, inputTokens: input, outputTokens: output },
      );
      assert.equal(BigInt(whole), BigInt(thousandths) * (BigInt(input) + BigInt(output)));
    }),
  );
});
