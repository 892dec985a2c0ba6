/**
 * Answers of models that say so (`spec.cache`), kept in memory for requests that are byte for byte the same. An answer
 * is kept as the provider sent it, streams chunk by chunk, so that it passes through the same translation and the same
 * rules as the first time.
 */
import { hash } from "node:crypto";
import { type CacheRules, THRESHOLD_DEFAULT } from "../../contract/model-cache.ts";
import type { ClientCall } from "../client-call.ts";
import { type ReadyAnswer, replay } from "../local-call.ts";
import type { LedgerName, Subject } from "../model-records.ts";
import type { AnswerSink, WireRequest } from "../provider-call.ts";
import type { DialectName } from "../providers/dialect.ts";
import type { Upstream } from "../upstreams.ts";
import { type Meaning, similarityOf } from "./meaning.ts";

export interface KeptAnswer extends ReadyAnswer {
  bytes: number;
  keptAtMs: number;
  /** Of the question; null where only the same request gets the answer. */
  meaning: Meaning | null;
}

/** All kept answers together. */
const CACHE_MAX_BYTES = 64 * 1024 * 1024;
/** Kept answers of one workspace: a busy one does not push out everybody else's. */
const WORKSPACE_MAX_BYTES = CACHE_MAX_BYTES / 4;
const ANSWER_MAX_BYTES = 1024 * 1024;
const REQUEST_MAX_BYTES = 1024 * 1024;
/** What an entry costs beside its bytes. */
const ENTRY_BYTES = 1024;
/** What a chunk costs beside its bytes: a provider may send one byte at a time. */
const CHUNK_BYTES = 128;

const costOf = ({ length }: Buffer): number => length + CHUNK_BYTES;

/** Requests that are questions with an answer; files, batches and stored objects are not. */
const DIALECTS: ReadonlySet<DialectName> = new Set<DialectName>([
  ...(["openai-chat", "openai-completions", "openai-responses", "openai-embeddings"] as const),
  ...(["anthropic-messages", "gemini-generate", "gemini-embed", "cohere-chat"] as const),
]);

/** Lines of a head that differ between requests for the same. */
const VARYING_LINES = /^(?:user-agent|idempotency-key|x-stainless-[^:]*|x-goog-api-client): .*\r\n/gm;

interface Share {
  bytes: number;
  /** The longest unused first. */
  answers: Map<string, KeptAnswer>;
  /** Keys of the answers to questions that differ in one text only, by what they share; the oldest first. */
  frames: Map<string, Set<string>>;
}

/** Answers among which a question with the same meaning is looked for, the latest ones. */
const FRAME_ANSWERS_MAX = 1000;

export class AnswerCache {
  readonly #now: () => number;
  readonly #shares = new Map<string, Share>();
  #bytes = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  find(workspace: string, key: string, { ttlSeconds }: CacheRules): KeptAnswer | null {
    const share = this.#shares.get(workspace);
    const answer = share?.answers.get(key);
    if (!share || !answer) return null;
    if (this.#now() - answer.keptAtMs >= ttlSeconds * 1000) {
      this.#drop(share, key);
      return null;
    }
    share.answers.delete(key);
    share.answers.set(key, answer);
    return answer;
  }

  /** The answer to the question that means most nearly the same; null when none is near enough. */
  findSimilar(
    workspace: string,
    meaning: Meaning,
    rules: CacheRules,
  ): { found: KeptAnswer; similarity: number } | null {
    const share = this.#shares.get(workspace);
    let best = { key: "", similarity: rules.semantic?.threshold ?? THRESHOLD_DEFAULT };
    for (const key of share?.frames.get(meaning.frame) ?? []) {
      const similarity = similarityOf(meaning, share?.answers.get(key)?.meaning ?? null);
      if (similarity >= best.similarity) best = { key, similarity };
    }
    const found = this.find(workspace, best.key, rules);
    return found && { found, similarity: best.similarity };
  }

  keep(workspace: string, key: string, { status, headers, chunks }: ReadyAnswer, meaning: Meaning | null = null): void {
    const own = ENTRY_BYTES + headers.join("").length + (meaning?.vector.byteLength ?? 0);
    const bytes = chunks.reduce((sum, chunk) => sum + costOf(chunk), own);
    const share = this.#shareOf(workspace);
    this.#drop(share, key);
    share.answers.set(key, { status, headers, chunks, bytes, keptAtMs: this.#now(), meaning });
    if (meaning) this.#frame(share, meaning.frame, key);
    this.#count(share, bytes);
    while (share.bytes > WORKSPACE_MAX_BYTES) this.#dropOldest(share);
    while (this.#bytes > CACHE_MAX_BYTES) this.#dropOldest(this.#largestShare());
  }

  #shareOf(workspace: string): Share {
    const known = this.#shares.get(workspace);
    if (known) return known;
    for (const [name, { answers }] of this.#shares) if (answers.size === 0) this.#shares.delete(name);
    const share: Share = { bytes: 0, answers: new Map(), frames: new Map() };
    this.#shares.set(workspace, share);
    return share;
  }

  #largestShare(): Share {
    return [...this.#shares.values()].reduce((most, share) => (share.bytes > most.bytes ? share : most));
  }

  #dropOldest(share: Share): void {
    const [oldest] = share.answers.keys();
    if (oldest !== undefined) this.#drop(share, oldest);
  }

  #drop(share: Share, key: string): void {
    const answer = share.answers.get(key);
    if (!answer) return;
    share.answers.delete(key);
    this.#count(share, -answer.bytes);
    const { frame = "" } = answer.meaning ?? {};
    const keys = share.frames.get(frame);
    keys?.delete(key);
    if (keys?.size === 0) share.frames.delete(frame);
  }

  #frame(share: Share, frame: string, key: string): void {
    const keys = share.frames.get(frame) ?? new Set();
    share.frames.set(frame, keys.add(key));
    const [oldest] = keys;
    if (keys.size > FRAME_ANSWERS_MAX && oldest !== undefined) this.#drop(share, oldest);
  }

  #count(share: Share, bytes: number): void {
    share.bytes += bytes;
    this.#bytes += bytes;
  }
}

/** How one request uses the cache. */
export type CacheUse =
  /** `similarity` is null for an answer to the same request. */
  { found: KeptAnswer; similarity: number | null } | CacheMiss;

/** Nothing is kept yet, or the caller wants a new answer, which is kept. */
export interface CacheMiss {
  found: null;
  key: string;
  meaning: Meaning | null;
  /** The caller wants a new answer. */
  isWanted: boolean;
}

export interface CacheQuestion {
  call: ClientCall;
  request: WireRequest;
  rules: CacheRules;
  workspace: string;
  ledger: LedgerName;
  subject: Subject | null;
  /** Where the provider is: the same model may be moved. */
  baseUrl: string;
}

/** Null when the request has nothing to do with the cache. */
export function useCache(cache: AnswerCache, question: CacheQuestion): CacheUse | null {
  const { call, request, rules, workspace } = question;
  const wish = wishOf(call.rawHeaders);
  if (wish === "no-store" || call.body.length > REQUEST_MAX_BYTES || !isQuestion(call)) return null;
  const key = keyOf(question, request.body ?? Buffer.alloc(0));
  const isWanted = wish === "no-cache";
  const found = isWanted ? null : cache.find(workspace, key, rules);
  return found === null ? { found, key, isWanted, meaning: null } : { found, similarity: null };
}

/** The same for requests that get the same answer: `body`, the model, the provider, and who may have it. */
export function keyOf({ ledger, subject, baseUrl, rules, request }: CacheQuestion, body: Buffer): string {
  const who = rules.scope === "model" ? "" : `${subject?.type ?? ""}/${subject?.id ?? ""}`;
  const lines = request.fields.replace(VARYING_LINES, "");
  const head = JSON.stringify([ledger.modelUid, who, baseUrl, request.method, request.path, lines]);
  return hash("sha256", Buffer.concat([Buffer.from(`${head}\n`), body]), "base64");
}

/** True for a request that leaves nothing behind at its provider but the answer. */
export function isQuestion({ method, members, dialect, member }: ClientCall): boolean {
  if (method !== "POST" || members === null || !DIALECTS.has(dialect.name)) return false;
  // An answer that the provider stores has an id of its own; one that comes later is not there yet.
  return member("store") !== true && (dialect.laterMember === undefined || member(dialect.laterMember) !== true);
}

/** What the caller says in `Cache-Control`; `no-store` is the stronger wish. */
function wishOf(rawHeaders: readonly string[]): "no-store" | "no-cache" | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if ((rawHeaders[i] as string).toLowerCase() !== "cache-control") continue;
    const value = (rawHeaders[i + 1] as string).toLowerCase();
    if (value.includes("no-store")) return "no-store";
    if (value.includes("no-cache") || /max-age\s*=\s*0\b/.test(value)) return "no-cache";
  }
  return null;
}

/** Keeps what a provider answers, until the caller of `take` knows that the answer is whole and good. */
export class AnswerRecorder {
  #status = 0;
  #headers: string[] = [];
  #chunks: Buffer[] = [];
  #bytes = 0;

  /** The same upstream, with a copy of its answer for the recorder. */
  record(upstream: Upstream): Upstream {
    return {
      basePath: upstream.basePath,
      send: (request, sink) => {
        this.#forget();
        return upstream.send(request, this.#beside(sink));
      },
    };
  }

  /** Null when the answer is no success, or too long to be kept. */
  take(): ReadyAnswer | null {
    if (this.#status !== 200 || this.#bytes > ANSWER_MAX_BYTES) return null;
    return { status: this.#status, headers: this.#headers, chunks: this.#chunks };
  }

  #forget(): void {
    this.#chunks = [];
    this.#bytes = 0;
  }

  #beside(sink: AnswerSink): AnswerSink {
    return {
      onHead: (status, headers) => {
        this.#status = status;
        this.#headers = headers;
        sink.onHead(status, headers);
      },
      onData: (chunk) => {
        this.#bytes += costOf(chunk);
        // A chunk may be a part of a larger buffer, all of which would be kept.
        if (this.#bytes <= ANSWER_MAX_BYTES) this.#chunks.push(Buffer.from(chunk));
        else this.#chunks = [];
        sink.onData(chunk);
      },
      onReadEnd: () => sink.onReadEnd(),
      onEnd: () => sink.onEnd(),
      onError: (error) => sink.onError(error),
    };
  }
}

/** An upstream that has the answer already. */
export const keptUpstream = (basePath: string, answer: KeptAnswer): Upstream => ({
  basePath,
  send: (_request, sink) => replay(answer, sink),
});
