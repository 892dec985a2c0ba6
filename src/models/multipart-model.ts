/**
 * The `model` field of a multipart form (audio and image endpoints) set to the record's model. The form is cut at its
 * boundary; every other part stays byte for byte.
 */
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
  let found: string | undefined;
  for (const { start, end } of formFields(body, contentType, "model")) found = body.toString("utf8", start, end);
  return found;
}

/** Where the values of the fields of that name are: [start, end). */
export function* formFields(
  body: Buffer,
  contentType: string,
  name: string,
): Generator<{ start: number; end: number }> {
  const boundary = boundaryOf(contentType);
  const named = new RegExp(`^content-disposition:[^\\r\\n]*[;\\s]name="?${name}"?\\s*(?:;|$)`, "im");
  if (!boundary) return;
  const delimiter = Buffer.from(`--${boundary}`);
  let at = body.indexOf(delimiter);
  for (let parts = 0; at >= 0 && parts < PARTS_MAX; parts += 1) {
    const headerStart = at + delimiter.length;
    const next = body.indexOf(delimiter, headerStart);
    if (next < 0) return;
    const blank = body.indexOf("\r\n\r\n", headerStart);
    // The line break before the delimiter belongs to the delimiter.
    if (blank >= 0 && blank < next && named.test(body.toString("latin1", headerStart, blank)))
      yield { start: blank + 4, end: next - 2 };
    at = next;
  }
}

const PARTS_MAX = 1000;

function boundaryOf(contentType: string): string | null {
  const match = /boundary=(?:"([^"]{1,70})"|([^;\s]{1,70}))/i.exec(contentType);
  return match?.[1] ?? match?.[2] ?? null;
}
