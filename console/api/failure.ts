import { isObject, memberAt, textAt } from "../lib/members.ts";

/** A refusal of the server, with what a person needs to act on it. */
export class ApiFailure extends Error {
  readonly status: number;
  /** The machine's word, such as `invalid_field`. */
  readonly code: string;
  readonly requestId: string;

  constructor(status: number, code: string, message: string, requestId: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

export async function failureOf(response: Response): Promise<ApiFailure> {
  const { status, headers } = response;
  const { code, message } = readRefusal(await response.json().catch(() => null));
  const said = message ?? `The server answered ${status}.`;
  return new ApiFailure(status, code ?? `http_${status}`, said, headers.get("x-request-id") ?? "");
}

/**
 * Three shapes: `{error: code, message}` of the API, `{error: {code, message, action}}` of the gateway and of models,
 * `{error: sentence}` of a sandbox.
 */
function readRefusal(body: unknown): { code?: string | undefined; message?: string | undefined } {
  const error = memberAt(body, "error");
  if (isObject(error)) {
    const message = [textAt(error, "message"), textAt(error, "action")].filter(Boolean).join(" ");
    return { code: textAt(error, "code") || undefined, message: message || undefined };
  }
  const [text, message] = [textAt(body, "error"), textAt(body, "message")];
  return message === "" ? { message: text || undefined } : { code: text || undefined, message };
}

export const unreachable = (): ApiFailure =>
  new ApiFailure(
    0,
    "unreachable",
    "The server does not answer. Check that it runs; the page tries again by itself.",
    "",
  );
