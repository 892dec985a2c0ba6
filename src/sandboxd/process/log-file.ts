/**
 * Output of a process, which the process itself writes to a file: no byte passes through the daemon, and a daemon that
 * dies loses nothing.
 *
 * The file is kept below a limit by dropping its head: a hole is punched, which frees the blocks, so a writer that
 * appends is not disturbed and offsets do not move. On a file system without holes the file is emptied instead.
 * Positions handed out are therefore logical: they count from the process's first byte.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, statSync } from "node:fs";
import { punchHead } from "../libc.ts";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR, O_TRUNC, O_NONBLOCK } = constants;

export const TRUNCATION_MARKER = "[... older output was dropped ...]\n";
/** Holes consist of whole blocks. */
const BLOCK_BYTES = 4096;
/** A cut in the middle of a line moves to the next line, if that begins within this distance. */
const LINE_SEARCH_BYTES = 64 * 1024;

/** The part of a LogFile's state that outlives the daemon. */
export interface LogPosition {
  path: string;
  base: number;
  dropped: number;
}

export class LogFile {
  path: string;
  #fd: number | null = null;
  /** Logical position of the file's byte 0; above zero only after the file had to be emptied. */
  #base: number;
  /** Logical position of the first byte that is still in the file. */
  #dropped: number;

  constructor(position: LogPosition) {
    this.path = position.path;
    this.#base = position.base;
    this.#dropped = position.dropped;
  }

  /** Creates an empty file and keeps its descriptor open until `close`. Refuses to follow a planted link. */
  static create(path: string): LogFile {
    const log = new LogFile({ path, base: 0, dropped: 0 });
    log.#fd = openSync(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0o644);
    return log;
  }

  get position(): LogPosition {
    return { path: this.path, base: this.#base, dropped: this.#dropped };
  }

  /** For the process and for the daemon's notices; opened with O_APPEND, so both may write. */
  get fd(): number {
    this.#fd ??= openSync(this.path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0o644);
    return this.#fd;
  }

  get start(): number {
    return this.#dropped;
  }

  /** Logical end. A file that was deleted or shortened from outside just looks shorter. */
  get end(): number {
    const size =
      this.#fd === null ? (statSync(this.path, { throwIfNoEntry: false })?.size ?? 0) : fstatSync(this.#fd).size;
    return Math.max(this.#base + size, this.#dropped);
  }

  /** Reads at a logical position into the buffer; 0 at the end. */
  read(position: number, buffer: Uint8Array): number {
    return readSync(this.fd, buffer, 0, buffer.byteLength, position - this.#base);
  }

  /** Where to begin reading for at most `bytesMax` of the tail; after a cut, at the start of a line. */
  tailStart(bytesMax: number): { position: number; cut: boolean } {
    const { end } = this;
    const wanted = Math.max(this.#dropped, end - bytesMax);
    if (wanted === 0) return { position: 0, cut: false };
    const probe = Buffer.alloc(Math.min(LINE_SEARCH_BYTES, end - wanted));
    const newline = probe.subarray(0, this.read(wanted, probe)).indexOf(0x0a);
    return { position: newline === -1 ? wanted : wanted + newline + 1, cut: true };
  }

  /** Drops the head so that about `keepBytes` remain. */
  trim(keepBytes: number): void {
    const { end } = this;
    const drop = end - keepBytes - this.#base;
    const bytes = drop - (drop % BLOCK_BYTES);
    if (bytes <= 0) return;
    if (punchHead(this.fd, bytes)) {
      this.#dropped = this.#base + bytes;
      return;
    }
    ftruncateSync(this.fd, 0);
    this.#base = end;
    this.#dropped = end;
  }

  close(): void {
    if (this.#fd === null) return;
    closeSync(this.#fd);
    this.#fd = null;
  }
}
