/** Callers and providers that want a batch to reach another model, or another caller's bill. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGateway } from "./gateway-harness.ts";
import { sendJson, startUpstream } from "./upstream-server.ts";

const EVIL =
  '{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-5-pro","messages":[]}}';
const FORM = "multipart/form-data; boundary=b";

const part = (disposition: string, value: string, more = ""): string =>
  `--b\r\nContent-Disposition: ${disposition}\r\n${more}\r\n${value}\r\n`;
const purpose = part('form-data; name="purpose"', "batch");
const fileOf = (text: string, more = ""): string => part('form-data; name="file"; filename="in.jsonl"', text, more);
const END = "--b--\r\n";

interface Attack {
  path?: string;
  type?: string;
  body: string | Buffer;
}

/** What a provider may take for a file of requests, each with another spelling of the form or the file. */
const FILES: Record<string, Attack> = {
  "a content type in capitals": { type: "Multipart/Form-Data; boundary=b", body: purpose + fileOf(EVIL) + END },
  "another parameter that ends with boundary": {
    type: "multipart/form-data; xboundary=c; boundary=b",
    body: purpose + fileOf(EVIL) + END,
  },
  "the delimiter within a line": { body: purpose + fileOf(`{"x":"--b"}\n${EVIL}`) + END },
  "the delimiter after a line feed": { body: purpose + fileOf(`{"x":1}\n--b\n${EVIL}`) + END },
  "more parts than are read": { body: part('form-data; name="x"', "").repeat(1001) + purpose + fileOf(EVIL) + END },
  "a field name with an escape": { body: part('form-data; name="p\\urpose"', "batch") + fileOf(EVIL) + END },
  "a field name in an extended parameter": {
    body: part("form-data; name*=UTF-8''purpose", "batch") + fileOf(EVIL) + END,
  },
  "a folded header": { body: part('form-data;\r\n name="purpose"', "batch") + fileOf(EVIL) + END },
  "headers that end with line feeds": {
    body: `--b\nContent-Disposition: form-data; name="purpose"\n\nbatch\r\n${fileOf(EVIL)}${END}`,
  },
  "an encoded part": {
    body:
      purpose +
      fileOf(EVIL.replace("gpt-5-pro", "gpt-5=2Dpro"), "Content-Transfer-Encoding: quoted-printable\r\n") +
      END,
  },
  "lines that end with a carriage return": { body: `${purpose}${fileOf(`{"x":1}\r${EVIL}\r{"y":2}`)}${END}` },
  "a line within a line": { body: `${purpose}${fileOf(`{"x":\r${EVIL}\r,"body":{}}`)}${END}` },
  "a byte order mark": { body: purpose + fileOf(`\ufeff${EVIL}`) + END },
  "a path with an encoded letter": { path: "/v1/file%73", body: purpose + fileOf(EVIL) + END },
  "a path with capitals": { path: "/v1/Files", body: purpose + fileOf(EVIL) + END },
  "an upload in parts": {
    path: "/v1/uploads",
    type: "application/json",
    body: '{"purpose":"batch","filename":"in.jsonl","bytes":100,"mime_type":"application/jsonl"}',
  },
  "no form at all": { type: "multipart/form-data", body: purpose + fileOf(EVIL) + END },
  "JSON in another encoding": {
    path: "/v1/images/generations",
    type: "application/json",
    body: Buffer.from('{"model":"gpt-5-pro"}', "utf16le"),
  },
};

test("no spelling of a file of requests leads to another model", async () => {
  await using up = await startUpstream((_request, res) => sendJson(res, { id: "file-1", object: "file" }));
  await using gateway = await startGateway({ m: { type: "openai", model: "gpt-5-mini", baseUrl: up.baseUrl } });
  for (const [name, { path = "/v1/files", type = FORM, body }] of Object.entries(FILES)) {
    const before = up.requests.length;
    const answer = await fetch(`${gateway.url("m")}${path}`, {
      ...{ method: "POST", headers: { "content-type": type }, body },
    });
    const sent = up.requests.slice(before).map(({ body: text }) => text);
    const isRewritten = sent.length === 1 && !/pro/.test(sent[0] ?? "pro");
    assert.ok(answer.status === 400 ? sent.length === 0 : isRewritten, `${name}: ${answer.status} ${sent.join()}`);
  }
});

test("every new batch is marked, however its path and body are written", async () => {
  await using up = await startUpstream((_request, res) => sendJson(res, { id: "batch_1", object: "batch" }));
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl } });
  const forged = '{"input_file_id":"f","metadata":{"gateway_caller":"forged"}}';
  for (const [path, body] of [
    ["/v1/batche%73", forged],
    ["/v1//Batches//", forged],
    ["/v1/batches", `\ufeff${forged}`],
    ["/v1/batches", Buffer.from(forged, "utf16le")],
  ] as const) {
    const before = up.requests.length;
    const answer = await fetch(`${gateway.url("m")}${path}`, { method: "POST", body });
    const [sent] = up.requests.slice(before);
    if (answer.status === 400) assert.equal(sent, undefined);
    else assert.match(sent?.body ?? "", /"gateway_caller":"\[\\"acme/, path);
    assert.doesNotMatch(sent?.body ?? "", /forged/, path);
  }
});

test("a provider counts nothing for callers and models that did not make the batch there", async () => {
  const made: unknown[] = [];
  const show = (mark: unknown) => ({
    object: "list",
    data: [
      {
        id: `batch_${made.length}`,
        object: "batch",
        metadata: { gateway_caller: mark },
        usage: { input_tokens: 1_000_000, output_tokens: 0, total_tokens: 1_000_000 },
        completed_at: Math.floor(Date.now() / 1000),
      },
    ],
  });
  await using real = await startUpstream((request, res) => {
    const { gateway_caller: mark } = (request.json as { metadata: { gateway_caller: string } }).metadata;
    made.push(mark);
    sendJson(res, { id: "batch_1", object: "batch", metadata: { gateway_caller: mark } });
  });
  let shown: unknown = null;
  let own = "";
  await using hostile = await startUpstream((request, res) => {
    if (request.method === "POST")
      own = (request.json as { metadata: { gateway_caller: string } }).metadata.gateway_caller;
    sendJson(res, show(shown));
  });
  await using gateway = await startGateway({
    m: { type: "openai", baseUrl: real.baseUrl },
    mine: { type: "openai", baseUrl: hostile.baseUrl },
  });
  await fetch(`${gateway.url("m")}/v1/batches`, {
    ...{ method: "POST", headers: { "x-test-key": "victim" }, body: '{"input_file_id":"f"}' },
  });
  await fetch(`${gateway.url("mine")}/v1/batches`, { method: "POST", body: '{"input_file_id":"f"}' });
  const [copied] = made;
  const texts = ['["acme","m","api_key","victim"]', '["acme","mine","api_key","victim"]', copied, own];
  for (const text of texts) {
    shown = text;
    await (await fetch(`${gateway.url("mine")}/v1/batches`)).text();
  }
  const counted = (await gateway.recorded(7)).filter(({ inputTokens }) => inputTokens > 0);
  assert.deepEqual(
    counted.map(({ model, subject }) => [model, subject?.id]),
    [["mine", "key-1"]],
    "only what was made there",
  );
});
