/** Folders that are being listed. Names that were read stay, because a program may go back in a list. */
import { FileError } from "../errors.ts";
import type { FileRef } from "../wire.ts";
import type { Channel } from "./channel.ts";

/** Names of one folder: more than a program lists at once, and bounded memory. */
const NAMES_MAX = 1_000_000;

interface Listing {
  entries: [string, number][];
  remote: number;
  epoch: number;
  isWhole: boolean;
}

export class OpenFolders {
  readonly #channel: Channel;
  readonly #open = new Map<number, Listing>();
  #last = 0;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  async open(folder: () => FileRef): Promise<number> {
    const { fh } = await this.#channel.ask("openFolder", folder);
    if (fh === undefined) throw new FileError("EIO");
    this.#last += 1;
    const entries: [string, number][] = [
      [".", 4],
      ["..", 4],
    ];
    this.#open.set(this.#last, { entries, remote: fh, epoch: this.#channel.epoch, isWhole: false });
    return this.#last;
  }

  /** The names so far, with some after `offset` where there are any. */
  async entries(fh: number, offset: number): Promise<readonly [string, number][]> {
    const listing = this.#open.get(fh);
    if (!listing) throw new FileError("ESTALE");
    while (!listing.isWhole && listing.entries.length <= offset) {
      if (listing.epoch !== this.#channel.epoch) throw new FileError("EIO");
      const { entries = [] } = await this.#channel.ask("names", () => ({ fh: listing.remote }));
      listing.isWhole = entries.length === 0;
      if (listing.entries.length + entries.length > NAMES_MAX) throw new FileError("EOVERFLOW");
      listing.entries.push(...entries);
    }
    return listing.entries;
  }

  async close(fh: number): Promise<void> {
    const listing = this.#open.get(fh);
    this.#open.delete(fh);
    if (!listing || listing.epoch !== this.#channel.epoch) return;
    await this.#channel.ask("close", () => ({ fh: listing.remote })).catch(() => {});
  }
}
