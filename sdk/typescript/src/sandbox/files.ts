/** Files of a sandbox. A path with a leading slash is absolute, another is relative to the working directory. */
import type { Berth } from "../berth.ts";
import { pathSegment } from "../core/address.ts";
import type { CallOptions } from "../core/call.ts";
import { BerthError } from "../core/errors.ts";
import { linesOf } from "../core/lines.ts";

export type FileData = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

export interface FileEntry {
  name: string;
  path: string;
  type: "file" | "directory";
  /** Bytes; 0 for a directory. */
  size: number;
  permissions: string;
  lastModified: string;
}

export interface WriteOptions extends CallOptions {
  /** Octal, such as `0755`. */
  permissions?: string | undefined;
}

export interface FileChange {
  /** CREATE, WRITE, REMOVE, RENAME or CHMOD, several joined with `|`. */
  op: string;
  path: string;
}

export interface FoundText {
  path: string;
  /** From 1. */
  line: number;
  column: number;
  text: string;
}

interface Listing {
  files?: { name: string; path: string; size?: number; permissions?: string; lastModified?: string }[];
  subdirectories?: { name: string; path: string }[];
}

const BYTES = "application/octet-stream";

export class SandboxFiles {
  readonly #berth: Berth;
  readonly #address: string;

  constructor(berth: Berth, address: string) {
    this.#berth = berth;
    this.#address = address;
  }

  /** Writes a file of any size. Folders on the way are made. */
  async write(path: string, data: FileData, options: WriteOptions = {}): Promise<void> {
    const { permissions, ...rest } = options;
    const query = permissions === undefined ? "" : `?permissions=${encodeURIComponent(permissions)}`;
    await this.#berth.askWorkload(this.#address, {
      ...rest,
      method: "PUT",
      path: `/filesystem/${pathSegment(path)}${query}`,
      headers: { "content-type": BYTES },
      body: data,
      repeatable: true,
    });
  }

  /** Writes several small files below a folder. */
  async writeMany(folder: string, files: Readonly<Record<string, string>>, options: CallOptions = {}): Promise<void> {
    await this.#berth.askWorkload(this.#address, {
      ...options,
      method: "PUT",
      path: `/filesystem/tree/${pathSegment(folder.startsWith("/") ? folder : `/${folder}`)}`,
      body: { files },
      repeatable: true,
    });
  }

  /** The text of a file. */
  async read(path: string, options: CallOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.readBytes(path, options));
  }

  async readBytes(path: string, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#download(path, options, async (response) => new Uint8Array(await response.arrayBuffer()));
  }

  /** The bytes of a file as they arrive, for files that are larger than memory. */
  async readStream(path: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.#download(path, options, async ({ body }) => {
      if (!body) throw new BerthError({ code: "broken_stream", message: `${path} was answered without a body.` });
      return body;
    });
  }

  /** The entries of a folder. */
  async list(path = ".", options: CallOptions = {}): Promise<FileEntry[]> {
    const { files, subdirectories } = (await this.#ask(`/filesystem/${pathSegment(path)}`, options)) as Listing;
    if (!files && !subdirectories)
      throw new BerthError({ code: "refused", status: 422, message: `${path} is not a folder.` });
    return [
      ...(subdirectories ?? []).map((folder) => entryOf("directory", folder)),
      ...(files ?? []).map((file) => entryOf("file", file)),
    ];
  }

  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#ask(`/filesystem/${pathSegment(path)}`, options);
      return true;
    } catch (error) {
      if (error instanceof BerthError && error.status === 404) return false;
      throw error;
    }
  }

  async makeFolder(path: string, options: CallOptions = {}): Promise<void> {
    const body = { isDirectory: true };
    await this.#ask(`/filesystem/${pathSegment(path)}`, { ...options, method: "PUT", body, repeatable: true });
  }

  /** Gives a file or folder another place. `overwrite` replaces a file that is there. */
  async move(path: string, destination: string, options: CallOptions & { overwrite?: boolean } = {}): Promise<void> {
    const { overwrite = false, ...rest } = options;
    const body = { destination, overwrite };
    await this.#ask(`/filesystem-move/${pathSegment(path)}`, { ...rest, method: "POST", body });
  }

  /** Deletes a file, or a folder with everything in it. A path that is not there is no error. */
  async remove(path: string, options: CallOptions = {}): Promise<void> {
    const target = `/filesystem/${pathSegment(path)}?recursive=true`;
    await this.#ask(target, { ...options, method: "DELETE", repeatable: true }).catch((error: unknown) => {
      if (!(error instanceof BerthError && error.status === 404)) throw error;
    });
  }

  /** Paths below a folder whose names match, such as `*.ts`. At most 1000. */
  async find(folder: string, pattern: string, options: CallOptions = {}): Promise<string[]> {
    const query = new URLSearchParams({ patterns: pattern, maxResults: "1000" });
    const answer = await this.#ask(`/filesystem-find/${pathSegment(folder)}?${query}`, options);
    return (answer as { matches: { path: string }[] }).matches.map(({ path }) => path);
  }

  /** Lines below a folder that contain a text. */
  async grep(folder: string, text: string, options: CallOptions & { files?: string } = {}): Promise<FoundText[]> {
    const { files, ...rest } = options;
    const query = new URLSearchParams({ query: text, caseSensitive: "true", ...(files ? { filePattern: files } : {}) });
    const answer = await this.#ask(`/filesystem-content-search/${pathSegment(folder)}?${query}`, rest);
    return (answer as { matches: FoundText[] }).matches;
  }

  /** Changes of a folder and everything below, until the signal or the loop ends. */
  async *watch(folder: string, options: CallOptions & { ignore?: string[] } = {}): AsyncGenerator<FileChange, void> {
    const { ignore = [], signal } = options;
    const query = ignore.length > 0 ? `?ignore=${encodeURIComponent(ignore.join(","))}` : "";
    const path = `/watch/filesystem/${pathSegment(folder)}/**${query}`;
    const response = await this.#berth.sendToWorkload(this.#address, { ...options, path }, async (answer) => answer);
    for await (const line of linesOf(response, signal)) {
      if (line === "" || line === "[keepalive]") continue;
      const { op, name, path: place } = JSON.parse(line) as { op: string; name: string; path: string };
      yield { op, path: `${place.replace(/\/$/, "")}/${name}` };
    }
  }

  #download<Result>(
    path: string,
    options: CallOptions,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const request = { ...options, path: `/filesystem/${pathSegment(path)}`, headers: { accept: BYTES } };
    return this.#berth.sendToWorkload(this.#address, request, read);
  }

  #ask(
    path: string,
    options: CallOptions & { method?: string; body?: unknown; repeatable?: boolean },
  ): Promise<unknown> {
    return this.#berth.askWorkload(this.#address, { ...options, path });
  }
}

const entryOf = (
  type: FileEntry["type"],
  { name, path, size = 0, permissions = "", lastModified = "" }: NonNullable<Listing["files"]>[number],
): FileEntry => ({ name, path, type, size, permissions, lastModified });
