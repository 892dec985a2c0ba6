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

test("without the field nothing changes, and a form without a boundary is refused", async () => {
  const { body, type } = await form([["models", "x"]]);
  assert.equal(withFormModel(body, type, "m"), body);
  assert.throws(() => withFormModel(body, "multipart/form-data", "m"), { code: "BAD_REQUEST" });
});

test("forms as clients write them are read", () => {
  const part = (head: string, value: string) => `--x\r\n${head}\r\n\r\n${value}\r\n`;
  const text = [
    part('Content-Disposition: form-data; name="file"; filename="a \\"b\\".wav"; filename*=UTF-8\'\'a%20b.wav', "RIFF"),
    part("content-disposition: form-data; name=model\r\nContent-Type: text/plain; charset=utf-8", "whisper"),
    part('Content-Disposition: form-data; name="empty"\r\nContent-Transfer-Encoding: 8bit', ""),
    "--x--",
  ].join("");
  for (const type of ["multipart/form-data; boundary=x", 'Multipart/Form-Data; charset=utf-8; Boundary="x"'])
    for (const end of ["", "\r\n"]) assert.equal(formModel(Buffer.from(text + end), type), "whisper");
});
