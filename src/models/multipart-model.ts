/**
 * The `model` field of a multipart form (audio and image endpoints) set to the record's model. The form is cut at its
 * boundary; every other part stays byte for byte.
 */
export function withFormModel(body: Buffer, contentType: string, model: string): Buffer {
  const out: Buffer[] = [];
  let copied = 0;
  for (const { start, end } of modelFields(body, contentType)) {
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
  for (const { start, end } of modelFields(body, contentType)) found = body.toString("utf8", start, end);
  return found;
}

/** Where the values of the fields named `model` are: [start, end). */
function* modelFields(body: Buffer, contentType: string): Generator<{ start: number; end: number }> {
  const boundary = boundaryOf(contentType);
  if (!boundary) return;
  const delimiter = Buffer.from(`--${boundary}`);
  let at = body.indexOf(delimiter);
  for (let parts = 0; at >= 0 && parts < PARTS_MAX; parts += 1) {
    const headerStart = at + delimiter.length;
    const next = body.indexOf(delimiter, headerStart);
    if (next < 0) return;
    const blank = body.indexOf("\r\n\r\n", headerStart);
    // The line break before the delimiter belongs to the delimiter.
    if (blank >= 0 && blank < next && NAMED_MODEL.test(body.toString("latin1", headerStart, blank)))
      yield { start: blank + 4, end: next - 2 };
    at = next;
  }
}

const PARTS_MAX = 1000;
const NAMED_MODEL = /^content-disposition:[^\r\n]*[;\s]name="?model"?\s*(?:;|$)/im;

function boundaryOf(contentType: string): string | null {
  const match = /boundary=(?:"([^"]{1,70})"|([^;\s]{1,70}))/i.exec(contentType);
  return match?.[1] ?? match?.[2] ?? null;
}
