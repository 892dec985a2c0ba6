/** Why an archive is refused. The reason is a clause that follows a colon in the message to the sender. */
export class ArchiveRefused extends Error {
  /** "unreadable": the bytes are not an archive. "refused": the archive holds something that is not allowed. */
  readonly kind: "unreadable" | "refused";

  constructor(kind: ArchiveRefused["kind"], reason: string) {
    super(reason);
    this.kind = kind;
  }
}

export const unreadable = (reason: string): ArchiveRefused => new ArchiveRefused("unreadable", reason);
export const refused = (reason: string): ArchiveRefused => new ArchiveRefused("refused", reason);

/** Names in messages are untrusted input: they are cut and quoted. */
export const quoted = (name: string): string => `'${name.slice(0, 100)}'`;
