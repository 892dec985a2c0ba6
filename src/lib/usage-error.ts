/** The user of the command line asked for something impossible; nothing has been done. */
export class UsageError extends Error {
  /** What to do instead. */
  readonly next: string | undefined;

  constructor(message: string, next?: string) {
    super(message);
    this.name = "UsageError";
    this.next = next;
  }
}
