/**
 * Files that the steps of a template copy. A client asks for an address for each, sends a tar there, and starts the
 * build. Until then this server remembers which file is whose; after a restart the client sends its files again.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { Readable } from "node:stream";
import type { Downstream } from "../../../http/downstream.ts";
import { HOUR_MS } from "../../../lib/time/clock.ts";
import { Refusal } from "../refusal.ts";

/** Files that clients have sent, by the hash of their content. */
export interface FileStore {
  put(content: NodeJS.ReadableStream, bytesMax: number): Promise<{ digest: string }>;
  /** The path of the file; null when there is none. */
  find(digest: string): Promise<string | null>;
}

export interface StepFileDeps {
  keyFor(purpose: string): Buffer;
  files: FileStore;
}

const PURPOSE = "e2b-template-files";
const VALID_MS = HOUR_MS;
const FILE_BYTES_MAX = 512 * 1024 * 1024;
const REMEMBERED_MAX = 10_000;
const HASH = /^[\w-]{1,128}$/;
const ADDRESS = /^\/template-files\/([\w-]+)\.([\w-]{43})$/;

export class StepFiles {
  readonly #deps: StepFileDeps;
  /** Whose file -> the digest of its content; the oldest first. */
  readonly #sent = new Map<string, string>();
  /** Callers who may build -> until when they may send files. */
  readonly #builders = new Map<string, number>();

  constructor(deps: StepFileDeps) {
    this.#deps = deps;
  }

  /** The caller has asked for a build, which the platform has allowed. */
  admit(owner: string, nowMs: number): void {
    remember(this.#builders, owner, nowMs + VALID_MS);
  }

  /** The path of the file that this caller has sent; null when it is not there. */
  async pathOf(owner: string, hash: string): Promise<string | null> {
    const digest = this.#sent.get(placeOf(owner, hash));
    return digest === undefined ? null : this.#deps.files.find(digest);
  }

  /** The path of an address that takes this file of the caller, for an hour. */
  addressFor(owner: string, hash: string, nowMs: number): string {
    if (!HASH.test(hash)) throw new Refusal(400, "The hash of the files is not valid.");
    if (!((this.#builders.get(owner) ?? 0) > nowMs))
      throw new Refusal(403, "Ask for a build before you send its files.");
    const payload = Buffer.from(JSON.stringify([owner, hash, nowMs + VALID_MS])).toString("base64url");
    return `/template-files/${payload}.${this.#mac(payload).toString("base64url")}`;
  }

  /** Takes a file; false when the request is not for such an address. */
  async take(down: Downstream, path: string, nowMs: number): Promise<boolean> {
    const [, payload, mac = ""] = ADDRESS.exec(path) ?? [];
    if (payload === undefined || down.method !== "PUT") return false;
    const isSigned = timingSafeEqual(Buffer.from(mac, "base64url"), this.#mac(payload));
    const [owner, hash, untilMs] = isSigned ? JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) : [];
    if (!isSigned || untilMs < nowMs) throw new Refusal(403, "This address is not valid, or no longer valid.");
    const { digest } = await this.#deps.files.put(bodyOf(down), FILE_BYTES_MAX);
    remember(this.#sent, placeOf(owner, hash), digest);
    return true;
  }

  #mac(payload: string): Buffer {
    return createHmac("sha256", this.#deps.keyFor(PURPOSE)).update(payload).digest();
  }
}

/** The newest last; beyond the limit the oldest goes. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest = ""] = map.keys();
  if (map.size > REMEMBERED_MAX) map.delete(oldest);
}

const placeOf = (owner: string, hash: string): string => JSON.stringify([owner, hash]);

/** The body of a request as a stream. */
function bodyOf(down: Downstream): Readable {
  const body = new Readable({ read: () => down.resumeBody() });
  down.attach({
    onRequestBody: (chunk) => {
      if (!body.push(chunk)) down.pauseBody();
    },
    onRequestEnd: () => body.push(null),
    onClientDrain: () => {},
    onClientGone: () => body.destroy(new Error("the client is gone")),
  });
  if (down.bodyFraming === "none") body.push(null);
  else {
    down.sendContinue();
    down.readBody();
  }
  return body;
}
