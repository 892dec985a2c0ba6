/** Thrown by whoever keeps the deadlines of an answer. */
export class AnswerTimeout extends Error {
  readonly code: "FIRST_BYTE_TIMEOUT" | "IDLE_TIMEOUT";

  constructor(code: AnswerTimeout["code"]) {
    super("the provider was silent for too long");
    this.code = code;
  }
}
