/**
 * The parts of a multipart form. The gateway must find the fields that the provider will find, and readers of forms
 * differ in what they tolerate. So a form that could be read in two ways is refused: clients write none.
 */
import { GatewayError } from "../../contract/gateway-errors.ts";

export interface FormPart {
  /** Null for a part that is no field. */
  name: string | null;
  /** The value's bytes are [start, end). */
  start: number;
  end: number;
}

const TOKEN = "[\\w!#$&'*+.^`|~-]+";
const PARAMETER = new RegExp(`\\s*;\\s*(${TOKEN})=(?:"((?:[^"\\\\\\r\\n]|\\\\.)*)"|([^\\s;",]+))`, "y");
const BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/;
const HEADER = /^([\w-]+):[ \t]*([^\r\n\0]*)$/;
/** Encodings that leave the bytes as they are. */
const PLAIN_ENCODINGS = ["7bit", "8bit", "binary"];
/** Forms of known APIs have some ten fields. */
const PARTS_MAX = 1000;
const [LINE_END, HEAD_END, CLOSING] = ["\r\n", "\r\n\r\n", "--"];

export const isForm = (contentType: string): boolean => /^\s*multipart\//i.test(contentType);

/** Where the values of the fields of that name are. Throws GatewayError for a form that is not well written. */
export const formFields = (body: Buffer, contentType: string, name: string): FormPart[] =>
  formParts(body, contentType).filter((part) => part.name === name);

export function formParts(body: Buffer, contentType: string): FormPart[] {
  const delimiter = Buffer.from(`--${boundaryOf(contentType)}`);
  const parts: FormPart[] = [];
  let at = body.indexOf(delimiter);
  if (at !== 0) throw unreadable("it does not begin with its boundary");
  for (;;) {
    const after = at + delimiter.length;
    const word = body.toString("latin1", after, after + 2);
    if (word === CLOSING) return checkEnd(body, after + CLOSING.length, parts);
    const next = body.indexOf(delimiter, after);
    // Wherever else the boundary stands, some readers would see the next part, and others would not.
    if (word !== LINE_END || next < 0 || body.toString("latin1", next - 2, next) !== LINE_END)
      throw unreadable("its boundary does not have a line of its own");
    if (parts.length >= PARTS_MAX) throw unreadable(`it has more than ${PARTS_MAX} parts`);
    const head = body.indexOf(HEAD_END, after);
    const [start, end] = [head + HEAD_END.length, next - LINE_END.length];
    if (head < 0 || start > end) throw unreadable("a part has no headers");
    parts.push({ name: nameOf(body.toString("latin1", after + LINE_END.length, head)), start, end });
    at = next;
  }
}

function checkEnd(body: Buffer, from: number, parts: FormPart[]): FormPart[] {
  if (body.toString("latin1", from).trim() !== "") throw unreadable("something follows its end");
  return parts;
}

function nameOf(head: string): string | null {
  let name: string | null = null;
  for (const line of head.split(LINE_END)) {
    const [, field = "", value = ""] = HEADER.exec(line) ?? [];
    if (field === "") throw unreadable("a part has a header that is not on one line");
    switch (field.toLowerCase()) {
      case "content-transfer-encoding":
        if (!PLAIN_ENCODINGS.includes(value.trim().toLowerCase())) throw unreadable("a part is encoded");
        break;
      case "content-disposition":
        if (name !== null) throw unreadable("a part has two names");
        name = parameterOf(value, "name");
    }
  }
  return name;
}

function boundaryOf(contentType: string): string {
  const boundary = parameterOf(contentType.trim(), "boundary");
  if (boundary === null || !BOUNDARY.test(boundary)) throw unreadable("its content type has no boundary");
  return boundary;
}

/** A parameter of a header such as `form-data; name="file"`; null when the header has none of that name. */
function parameterOf(header: string, wanted: string): string | null {
  let found: string | null = null;
  let at = header.indexOf(";");
  while (at >= 0 && at < header.length) {
    PARAMETER.lastIndex = at;
    const [, name = "", quoted, bare] = PARAMETER.exec(header) ?? [];
    if (name === "") throw unreadable("a header has parameters that cannot be read");
    at = PARAMETER.lastIndex;
    // `name*` and `name*0` are other spellings of a name, which some readers know.
    if (!name.toLowerCase().startsWith(wanted)) continue;
    const value = quoted ?? bare ?? "";
    if (name.toLowerCase() !== wanted || found !== null || /[\\%]/.test(value))
      throw unreadable(`a ${wanted} is written in an unusual way`);
    found = value;
  }
  return found;
}

const unreadable = (why: string): GatewayError =>
  new GatewayError("BAD_REQUEST", `The multipart form cannot be read: ${why}.`);
