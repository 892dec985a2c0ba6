/** Parses multipart/form-data as it streams in. Buffers only a few kilobytes; a part's bytes go to its sink at once. */
import { ApiError } from "./api-error.ts";

export interface FormPart {
  name: string;
  filename: string | undefined;
}

export interface PartSink {
  write(chunk: Uint8Array): void | Promise<void>;
  end?(): void | Promise<void>;
}

const HEADER_BYTES_MAX = 16 * 1024;
const PARTS_MAX = 1000;
const HEADER_END = Buffer.from("\r\n\r\n");

export const isFormData = (contentType: string | undefined): boolean =>
  /^multipart\/form-data\s*(;|$)/i.test(contentType ?? "");

/** Calls `open` for every part, in order, and feeds the sink it returns. */
export async function readForm(
  source: AsyncIterable<Buffer>,
  contentType: string | undefined,
  open: (part: FormPart) => PartSink | Promise<PartSink>,
): Promise<void> {
  const reader = new FormReader(boundaryOf(contentType), open);
  for await (const chunk of source) await reader.push(chunk);
  reader.finish();
}

function boundaryOf(contentType: string | undefined): string {
  const match = /;\s*boundary=(?:"([^"]{1,200})"|([^;\s"]{1,200}))/i.exec(contentType ?? "");
  const boundary = match?.[1] ?? match?.[2];
  if (!boundary) throw new ApiError(400, "The Content-Type has no multipart boundary.");
  return boundary;
}

/** Modes: preamble -> headers -> body -> headers ... -> epilogue. */
class FormReader {
  readonly #delimiter: Buffer;
  readonly #open: (part: FormPart) => PartSink | Promise<PartSink>;
  #mode: "preamble" | "headers" | "body" | "epilogue" = "preamble";
  #pending: Buffer;
  #sink: PartSink | null = null;
  #parts = 0;

  constructor(boundary: string, open: (part: FormPart) => PartSink | Promise<PartSink>) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
    this.#open = open;
    // The first delimiter has no line break before it; adding one makes all delimiters alike.
    this.#pending = Buffer.from("\r\n");
  }

  async push(chunk: Buffer): Promise<void> {
    this.#pending = this.#pending.byteLength === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (await this.#step());
  }

  finish(): void {
    if (this.#mode !== "epilogue") throw new ApiError(400, "The form ended before its closing boundary.");
  }

  /** True when the pending bytes may hold another step. */
  #step(): boolean | Promise<boolean> {
    if (this.#mode === "epilogue") {
      this.#pending = Buffer.alloc(0);
      return false;
    }
    return this.#mode === "headers" ? this.#headers() : this.#untilDelimiter();
  }

  async #untilDelimiter(): Promise<boolean> {
    const at = this.#pending.indexOf(this.#delimiter);
    if (at === -1) {
      // The last pending bytes may be the start of a delimiter.
      const safe = this.#pending.byteLength - this.#delimiter.byteLength;
      if (safe > 0) await this.#emit(safe);
      return false;
    }
    // Two bytes behind the delimiter tell whether another part follows.
    if (this.#pending.byteLength < at + this.#delimiter.byteLength + 2) return false;
    await this.#emit(at);
    const after = this.#pending.toString("latin1", this.#delimiter.byteLength, this.#delimiter.byteLength + 2);
    if (after !== "\r\n" && after !== "--") throw new ApiError(400, "The form has a malformed boundary line.");
    this.#pending = this.#pending.subarray(this.#delimiter.byteLength + (after === "--" ? 2 : 0));
    await this.#sink?.end?.();
    this.#sink = null;
    this.#mode = after === "--" ? "epilogue" : "headers";
    return true;
  }

  async #headers(): Promise<boolean> {
    const end = this.#pending.indexOf(HEADER_END);
    if (end === -1) {
      if (this.#pending.byteLength > HEADER_BYTES_MAX)
        throw new ApiError(400, "The headers of a form part are too long.");
      return false;
    }
    this.#parts += 1;
    if (this.#parts > PARTS_MAX) throw new ApiError(400, `The form has more than ${PARTS_MAX} parts.`);
    const text = this.#pending.toString("utf8", 0, end);
    this.#pending = this.#pending.subarray(end + HEADER_END.byteLength);
    this.#sink = await this.#open(partOf(text));
    this.#mode = "body";
    return true;
  }

  async #emit(bytes: number): Promise<void> {
    if (this.#mode === "body" && bytes > 0) await this.#sink?.write(this.#pending.subarray(0, bytes));
    this.#pending = this.#pending.subarray(bytes);
  }
}

function partOf(headers: string): FormPart {
  const disposition = /^content-disposition:(.*)$/im.exec(headers)?.[1] ?? "";
  const name = parameter(disposition, "name");
  if (name === undefined) throw new ApiError(400, "A form part has no name.");
  return { name, filename: parameter(disposition, "filename") ?? parameter(disposition, "filename\\*") };
}

const parameter = (header: string, name: string): string | undefined => {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, "i").exec(header);
  return match?.[1] ?? match?.[2];
};
