/**
 * Folders that are being listed. Only the names around the place that a program has reached are kept: a folder may have
 * millions of them, and this process is not part of the sandbox that lists it. A program that goes back gets the list
 * anew.
 */
import { FileError } from "../errors.ts";
import type { FileRef } from "../wire.ts";
import type { Channel } from "./channel.ts";

/** Lists that programs have open at once; each keeps the names of an answer or two. */
const LISTINGS_MAX = 1024;

export interface NamesFrom {
  /** The place of the first name in the list. */
  first: number;
  entries: readonly [name: string, type: number][];
}

interface Listing extends NamesFrom {
  folder: () => FileRef;
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
    if (this.#open.size >= LISTINGS_MAX) throw new FileError("ENFILE");
    const listing = await this.#begun(folder);
    this.#last += 1;
    this.#open.set(this.#last, listing);
    return this.#last;
  }

  /** The names from `offset` on, as far as they are there; none at the end. */
  async entries(fh: number, offset: number): Promise<NamesFrom> {
    const listing = this.#open.get(fh);
    if (!listing) throw new FileError("ESTALE");
    if (offset < listing.first) {
      await this.#left(listing);
      Object.assign(listing, await this.#begun(listing.folder));
    }
    for (;;) {
      const dropped = listing.entries.splice(0, offset - listing.first).length;
      listing.first += dropped;
      if (listing.isWhole || listing.entries.length > 0) return listing;
      if (listing.epoch !== this.#channel.epoch) throw new FileError("EIO");
      const { entries = [] } = await this.#channel.ask("names", () => ({ fh: listing.remote }));
      listing.isWhole = entries.length === 0;
      listing.entries.push(...entries);
    }
  }

  async close(fh: number): Promise<void> {
    const listing = this.#open.get(fh);
    this.#open.delete(fh);
    if (listing) await this.#left(listing);
  }

  async #begun(folder: () => FileRef): Promise<Listing> {
    const { fh } = await this.#channel.ask("openFolder", folder);
    if (fh === undefined) throw new FileError("EIO");
    const entries: [string, number][] = [
      [".", 4],
      ["..", 4],
    ];
    return { folder, first: 0, entries, remote: fh, epoch: this.#channel.epoch, isWhole: false };
  }

  async #left({ remote, epoch }: Listing): Promise<void> {
    if (epoch !== this.#channel.epoch) return;
    await this.#channel.ask("close", () => ({ fh: remote })).catch(() => {});
  }
}
