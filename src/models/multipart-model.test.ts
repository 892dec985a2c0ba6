import assert from "node:assert/strict";
import { test } from "node:test";
import { formModel, withFormModel } from "./multipart-model.ts";

async function form(fields: [string, string | Blob][]): Promise<{ body: Buffer; type: string }> {
  const data = new FormData();
  for (const [name, value] of fields) data.append(name, value);
  const response = new Response(data);
  return { body: Buffer.from(await response.arrayBuffer()), type: response.headers.get("content-type") ?? "" };
}

const read = async (body: Buffer, type: string): Promise<FormData> =>
  new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();

test("the model field is replaced and the file is not touched", async () => {
  const bytes = Buffer.from('\r\n--fake\r\nname="model"\r\n\r\nnot me\r\n\0\xff', "latin1");
  const { body, type } = await form([
    ["file", new Blob([bytes])],
    ["model", "whisper"],
    ["language", "en"],
  ]);
  assert.equal(formModel(body, type), "whisper");
  const edited = await read(withFormModel(body, type, "the-model"), type);
  assert.equal(edited.get("model"), "the-model");
  assert.equal(edited.get("language"), "en");
  const file = edited.get("file");
  assert.ok(file instanceof Blob);
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), bytes);
});

test("without the field, or without a boundary, nothing changes", async () => {
  const { body, type } = await form([["models", "x"]]);
  assert.equal(withFormModel(body, type, "m"), body);
  assert.equal(withFormModel(body, "multipart/form-data", "m"), body);
});
