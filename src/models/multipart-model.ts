/**
 * The `model` field of a multipart form (audio and image endpoints) set to the record's model. The form is cut at its
 * boundary; every other part stays byte for byte.
 */
export function withFormModel(body: Buffer, contentType: string, model: string): Buffer {
  const boundary = boundaryOf(contentType);
  if (!boundary) return body;
  const delimiter = Buffer.from(`--${boundary}`);
  let at = body.indexOf(delimiter);
  const out: Buffer[] = [];
  let copied = 0;
  for (let parts = 0; at >= 0 && parts < PARTS_MAX; parts += 1) {
    const headerStart = at + delimiter.length;
    const next = body.indexOf(delimiter, headerStart);
    if (next < 0) break;
    const blank = body.indexOf("\r\n\r\n", headerStart);
    if (blank >= 0 && blank < next && NAMED_MODEL.test(body.toString("latin1", headerStart, blank))) {
      out.push(body.subarray(copied, blank + 4), Buffer.from(model));
      // The line break before the delimiter belongs to the delimiter.
      copied = next - 2;
    }
    at = next;
  }
  if (copied === 0) return body;
  out.push(body.subarray(copied));
  return Buffer.concat(out);
}

const PARTS_MAX = 1000;
const NAMED_MODEL = /^content-disposition:[^\r\n]*[;\s]name="?model"?\s*(?:;|$)/im;

function boundaryOf(contentType: string): string | null {
  const match = /boundary=(?:"([^"]{1,70})"|([^;\s]{1,70}))/i.exec(contentType);
  return match?.[1] ?? match?.[2] ?? null;
}
