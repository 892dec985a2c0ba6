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
  put(content: NodeJS.ReadableStream, bytesMax: number): Promise<{ digest: string; sizeBytes: number }>;
  /** The path of the file; null when there is none. */
  find(digest: string): Promise<string | null>;
}

export interface StepFileDeps {
  keyFor(purpose: string): Buffer;
  files: FileStore;
}

/** A caller who may build. */
interface Builder {
  /** Until when files may be sent. */
  untilMs: number;
  /** The digest of each file by the hash that the client has for it; the oldest first. */
  readonly sent: Map<string, string>;
  /** Bytes that came, or are on their way, since `sinceMs`. */
  bytes: number;
  sinceMs: number;
}

const PURPOSE = "e2b-template-files";
const VALID_MS = HOUR_MS;
const FILE_BYTES_MAX = 512 * 1024 * 1024;
/** Files of one caller that are remembered; further ones take the place of the caller's own. */
const FILES_MAX = 256;
/** Bytes that one caller may send within an hour. */
const HOUR_BYTES_MAX = 8 * 1024 * 1024 * 1024;
const BUILDERS_MAX = 10_000;
const HASH = /^[\w-]{1,128}$/;
const ADDRESS = /^\/template-files\/([\w-]+)\.([\w-]{43})$/;

export class StepFiles {
  readonly #deps: StepFileDeps;
  /** By caller; the oldest first. */
  readonly #builders = new Map<string, Builder>();

  constructor(deps: StepFileDeps) {
    this.#deps = deps;
  }

  /** The caller has asked for a build, which the platform has allowed. */
  admit(owner: string, nowMs: number): void {
    this.#builder(owner, nowMs).untilMs = nowMs + VALID_MS;
  }

  /** The path of the file that this caller has sent; null when it is not there. */
  async pathOf(owner: string, hash: string): Promise<string | null> {
    const digest = this.#builders.get(owner)?.sent.get(hash);
    return digest === undefined ? null : this.#deps.files.find(digest);
  }

  /** The path of an address that takes this file of the caller, for an hour. */
  addressFor(owner: string, hash: string, nowMs: number): string {
    if (!HASH.test(hash)) throw new Refusal(400, "The hash of the files is not valid.");
    if (!((this.#builders.get(owner)?.untilMs ?? 0) > nowMs))
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
    const builder = this.#builder(owner, nowMs);
    const told = Number(down.header("content-length") ?? Number.NaN);
    const claimed = told >= 0 && told < FILE_BYTES_MAX ? told : FILE_BYTES_MAX;
    if (builder.bytes + claimed > HOUR_BYTES_MAX) throw new Refusal(429, "Too many bytes within an hour.");
    builder.bytes += claimed;
    let came = 0;
    try {
      const { digest, sizeBytes } = await this.#deps.files.put(bodyOf(down), claimed);
      came = sizeBytes;
      remember(builder.sent, hash, digest, FILES_MAX);
    } finally {
      builder.bytes += came - claimed;
    }
    return true;
  }

  #builder(owner: string, nowMs: number): Builder {
    const known = this.#builders.get(owner) ?? { untilMs: 0, sent: new Map(), bytes: 0, sinceMs: nowMs };
    if (nowMs - known.sinceMs > HOUR_MS) Object.assign(known, { bytes: 0, sinceMs: nowMs });
    remember(this.#builders, owner, known, BUILDERS_MAX);
    return known;
  }

  #mac(payload: string): Buffer {
    return createHmac("sha256", this.#deps.keyFor(PURPOSE)).update(payload).digest();
  }
}

/** The newest last; beyond the limit the oldest goes. */
function remember<V>(map: Map<string, V>, key: string, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest = ""] = map.keys();
  if (map.size > max) map.delete(oldest);
}

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
