/** Files and batches with OpenAI's own client: counted once, for who made them, and no way to another model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { toFile } from "openai";
import { startGateway, type TestGateway } from "./gateway-harness.ts";
import { sendJson, startUpstream } from "./upstream-server.ts";

const PRICES = { input: "1", output: "2" };
const line = (model: string, more = "") =>
  `{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{${more}"model":"${model}","seed":1.0,"messages":[]}}`;

/** Files and batches of one account, as the provider keeps them. */
async function startProvider() {
  const batches = new Map<string, Record<string, unknown>>();
  const server = await startUpstream((request, res) => {
    const [path = ""] = request.url.split("?");
    if (path === "/v1/files") return sendJson(res, { id: "file-1", object: "file", purpose: "batch" });
    if (path === "/v1/batches" && request.method === "POST") {
      const id = `batch_${batches.size + 1}`;
      batches.set(id, { id, object: "batch", status: "validating", ...request.json });
      return sendJson(res, batches.get(id));
    }
    if (path === "/v1/batches") return sendJson(res, { object: "list", data: [...batches.values()], has_more: false });
    sendJson(res, batches.get(path.split("/")[3] ?? "") ?? {});
  });
  const usage = { input_tokens: 1000, output_tokens: 500, total_tokens: 1500 };
  const finish = (id: string): void => {
    const [completed_at, batch] = [1_763_000_000, batches.get(id)];
    batches.set(id, { ...batch, id, status: "completed", completed_at, usage });
  };
  return { ...server, finish, batches, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const clientOf = (gateway: TestGateway, model: string, key = "key-1"): OpenAI =>
  new OpenAI({
    ...{ baseURL: `${gateway.url(model)}/v1`, apiKey: "platform-key", maxRetries: 0 },
    defaultHeaders: { "x-test-key": key },
  });

const NEW = { endpoint: "/v1/chat/completions", completion_window: "24h", input_file_id: "file-1" } as const;

test("a finished batch is counted for the caller who made it, under one name however often it is looked at", async () => {
  await using up = await startProvider();
  const model = { type: "openai", model: "gpt-5-mini", baseUrl: up.baseUrl, prices: PRICES };
  await using gateway = await startGateway({ m: model, other: model });
  const made = await clientOf(gateway, "m", "maker").batches.create({
    ...NEW,
    metadata: { job: "nightly", gateway_caller: '["acme","other","api_key","somebody-else"]' },
  });
  assert.equal(made.metadata?.job, "nightly");
  const looker = clientOf(gateway, "m", "looker");
  await looker.batches.retrieve(made.id);
  assert.ok(
    (await gateway.recorded(2)).every(({ inputTokens }) => inputTokens === 0),
    "nothing is finished yet",
  );
  up.finish(made.id);
  await looker.batches.retrieve(made.id);
  await clientOf(gateway, "other", "looker").batches.list();
  await looker.batches.cancel(made.id);
  const counted = (await gateway.recorded(8)).filter(({ requestId }) => requestId.startsWith("batch-"));
  assert.equal(counted.length, 3);
  assert.equal(new Set(counted.map(({ requestId }) => requestId)).size, 1, "the ledger takes the same id once");
  for (const { model: asked, subject, inputTokens, outputTokens, costNanoUsd, startedAtMs, modelUid } of counted)
    assert.deepEqual(
      [asked, modelUid, subject, inputTokens, outputTokens, costNanoUsd, startedAtMs],
      ["m", "uid-of-m", { type: "api_key", id: "maker" }, 1000, 500, 2_000_000, 1_763_000_000_000],
    );
});

test("a batch of another workspace, or of nobody, is not counted", async () => {
  await using up = await startProvider();
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl } });
  for (const metadata of [{}, { gateway_caller: '["elsewhere","m","api_key","x"]' }, { gateway_caller: "{" }]) {
    const id = `batch_${up.batches.size + 1}`;
    up.batches.set(id, { id, object: "batch", metadata });
    up.finish(id);
  }
  await clientOf(gateway, "m").batches.list();
  assert.deepEqual(
    (await gateway.recorded(1)).map(({ requestId }) => requestId),
    ["req-1"],
  );
});

test("each line of a batch's file names the record's model, and stays as it is otherwise", async () => {
  await using up = await startProvider();
  await using gateway = await startGateway({ m: { type: "openai", model: "gpt-5-mini", baseUrl: up.baseUrl } });
  const client = clientOf(gateway, "m");
  const text = `${line("gpt-5-pro")}\n${line("gpt-5-pro", '"model":"gpt-5-max",')}\r\n\n${line("x")}`;
  const file = await client.files.create({ file: await toFile(Buffer.from(text), "in.jsonl"), purpose: "batch" });
  assert.equal(file.id, "file-1");
  const [sent] = up.requests;
  assert.doesNotMatch(sent?.body ?? "", /gpt-5-pro|gpt-5-max/);
  assert.equal(sent?.body.split('"model":"gpt-5-mini"').length, 5);
  assert.match(sent?.body ?? "", /"seed":1\.0/);
  const notes = await toFile(Buffer.from(line("gpt-5-pro")), "notes.txt");
  await client.files.create({ file: notes, purpose: "user_data" });
  assert.match(up.requests[1]?.body ?? "", /gpt-5-pro/);
});
