/** The `model` field of a multipart form (audio and image endpoints). Every other part stays byte for byte. */
import { formFields } from "./multipart-form.ts";

/** The form with the record's model in its `model` field. */
export function withFormModel(body: Buffer, contentType: string, model: string): Buffer {
  const out: Buffer[] = [];
  let copied = 0;
  for (const { start, end } of formFields(body, contentType, "model")) {
    out.push(body.subarray(copied, start), Buffer.from(model));
    copied = end;
  }
  if (copied === 0) return body;
  out.push(body.subarray(copied));
  return Buffer.concat(out);
}

/** The `model` field of a form; the last one wins. */
export function formModel(body: Buffer, contentType: string): string | undefined {
  const field = formFields(body, contentType, "model").at(-1);
  return field && body.toString("utf8", field.start, field.end);
}
