/**
 * The model in the lines of a batch's input file. A caller of one model must not reach another one by writing its name
 * into the file, so each line names the model of the record. Everything else of the form stays byte for byte.
 */
import { editMembers, memberValue, topLevelMembers } from "../json-members.ts";
import { formFields } from "../multipart-model.ts";

const NEWLINE = 0x0a;

export function withBatchModel(form: Buffer, contentType: string, model: string): Buffer {
  const isBatch = [...formFields(form, contentType, "purpose")].some(
    ({ start, end }) => form.toString("utf8", start, end).trim() === "batch",
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

function linesWithModel(file: Buffer, model: string): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < file.length; ) {
    const newline = file.indexOf(NEWLINE, from);
    const to = newline < 0 ? file.length : newline + 1;
    lines.push(lineWithModel(file.subarray(from, to), model));
    from = to;
  }
  return lines;
}

/** A line that is no request is the provider's to refuse. */
function lineWithModel(line: Buffer, model: string): Buffer {
  const members = topLevelMembers(line);
  if (!members || memberValue(line, members, "body") === undefined) return line;
  const edits: Record<string, string> = {};
  const last = members.findLast(({ key }) => key === "body");
  const body = last ? line.subarray(last.start, last.end) : null;
  const inner = body && topLevelMembers(body);
  if (!body || !inner) return line;
  edits.body = editMembers(body, inner, { model: JSON.stringify(model) }).toString("utf8");
  const edited = editMembers(line, members, edits);
  return edited.at(-1) === NEWLINE || line.at(-1) !== NEWLINE ? edited : Buffer.concat([edited, LINE_END]);
}

const LINE_END = Buffer.from("\n");
