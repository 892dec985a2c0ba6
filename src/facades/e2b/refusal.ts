/** A refusal in the words of E2B's API: `{code, message}`, with the status as the code. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
  }
}

export const unsupported = (what: string): Refusal => new Refusal(400, `${what} is not supported by this platform.`);

/** Percent-encoded text of a client. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Refusal(400, `"${text}" is not percent-encoded text.`);
  }
}
