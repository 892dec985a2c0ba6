/** The person at the keyboard asked for something that cannot be; nothing has been done. */
export class UsageError extends Error {
  /** What to do instead. */
  readonly next: string | undefined;

  constructor(message: string, next?: string) {
    super(message);
    this.name = "UsageError";
    this.next = next;
  }
}
