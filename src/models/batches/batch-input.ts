/**
 * The model in the lines of a batch's input file. A caller of one model must not reach another one by writing its name
 * into the file, so each line names the model of the record. Everything else of the form stays byte for byte. A file
 * that cannot be read here is refused: a provider might read it.
 */
import { GatewayError } from "../../contract/gateway-errors.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import type { ClientCall } from "../client-call.ts";
import { formFields } from "../forms/multipart-form.ts";
import { editMembers, topLevelMembers } from "../json-members.ts";
import { isAt } from "../plain-path.ts";

const NEWLINE = 0x0a;
const FILES = /\/files\/?$/i;
const UPLOADS = /\/uploads\/?$/i;
/** Some providers write more behind the word. */
const BATCH = /^\s*batch/i;

/** Throws for an upload in parts: a line may begin in one part and end in another. */
export function refuseBatchUpload({ path, member }: Pick<ClientCall, "path" | "member">): void {
  if (isAt(path, UPLOADS) && BATCH.test(String(member("purpose"))))
    throw new GatewayError("BAD_REQUEST", "A batch's file is sent whole, to /files.");
}

export function withBatchModel(form: Buffer, { path, contentType }: ClientCall, model: string): Buffer {
  if (!isAt(path, FILES)) return form;
  const isBatch = formFields(form, contentType, "purpose").some(({ start, end }) =>
    BATCH.test(form.toString("utf8", start, end)),
  );
  if (!isBatch) return form;
  const out: Buffer[] = [];
  let copied = 0;
  for (const { start, end } of formFields(form, contentType, "file")) {
    out.push(form.subarray(copied, start), ...linesWithModel(form.subarray(start, end), model));
    copied = end;
  }
  return copied === 0 ? form : Buffer.concat([...out, form.subarray(copied)]);
}

/** The same for a batch whose requests are in the body. */
export function withRequestModels({ body }: Pick<ClientCall, "body">, model: string): Buffer {
  const batch: unknown = JSON.parse(body.toString("utf8"));
  const requests = isRecord(batch) ? batch.requests : undefined;
  if (!isRecord(batch) || !Array.isArray(requests) || !requests.every((one) => isRecord(one) && isRecord(one.params)))
    throw new GatewayError("BAD_REQUEST", "A batch has `requests`: a list of objects with `params`.");
  const named = requests.map((one: Record<string, object>) => ({ ...one, params: { ...one.params, model } }));
  return Buffer.from(JSON.stringify({ ...batch, requests: named }));
}

function linesWithModel(file: Buffer, model: string): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < file.length; ) {
    const newline = file.indexOf(NEWLINE, from);
    const to = newline < 0 ? file.length : newline + 1;
    lines.push(lineWithModel(file.subarray(from, to), model, lines.length + 1));
    from = to;
  }
  return lines;
}

function lineWithModel(line: Buffer, model: string, number: number): Buffer {
  const text = line.toString("utf8");
  if (text.trim() === "") return line;
  const members = topLevelMembers(line);
  const last = members?.findLast(({ key }) => key === "body");
  const body = last && line.subarray(last.start, last.end);
  const inner = body && topLevelMembers(body);
  if (!members || !inner || !isRequest(text))
    throw new GatewayError(
      "BAD_REQUEST",
      `Line ${number} of the batch's file is no request: a JSON object with a \`body\`, in UTF-8, on one line.`,
    );
  const edits = { body: editMembers(body, inner, { model: JSON.stringify(model) }).toString("utf8") };
  const edited = editMembers(line, members, edits);
  return edited.at(-1) === NEWLINE || line.at(-1) !== NEWLINE ? edited : Buffer.concat([edited, LINE_END]);
}

/** For many readers a carriage return ends a line, too. */
function isRequest(text: string): boolean {
  if (/\r(?!\n)/.test(text)) return false;
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

const LINE_END = Buffer.from("\n");
