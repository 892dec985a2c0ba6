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
  const body = (await response.json().catch(() => ({}))) as { error?: unknown; message?: unknown };
  const code = typeof body.error === "string" ? body.error : `http_${response.status}`;
  const message = typeof body.message === "string" ? body.message : `The server answered ${response.status}.`;
  return new ApiFailure(response.status, code, message, response.headers.get("x-request-id") ?? "");
}

export const unreachable = (): ApiFailure =>
  new ApiFailure(
    0,
    "unreachable",
    "The server does not answer. Check that it runs; the page tries again by itself.",
    "",
  );
