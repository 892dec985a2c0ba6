/**
 * A thin client of the Kubernetes API: JSON answers checked by a schema, every call bounded in time and size. Objects
 * have names that their makers choose, so every call may be sent again: a create whose answer was lost finds its object,
 * a delete names the uid that it means. A busy or restarting API server is asked again until the patience of a call ends.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { backoffMs } from "../../../../lib/backoff.ts";
import { upTo } from "../../common/up-to.ts";
import type { Account } from "./account.ts";
import { isRefusal, KubeRefusal } from "./refusal.ts";

const CONNECT_WAIT_MS = 10_000;
/** One try of a call. */
const TRY_WAIT_MS = 30_000;
/** All tries of a call: an API server restarts in seconds. */
const PATIENCE_MS = 60_000;
const RETRY = { baseMs: 50, maxMs: 5_000 };
/** Longest answer that is read whole: a page of pods has a tenth of it. */
const ANSWER_BYTES_MAX = 64 * 1024 ** 2;
const REFUSAL_BYTES_MAX = 1024 ** 2;
/** An object has at most 1.5 MB in a cluster. */
const LINE_BYTES_MAX = 8 * 1024 ** 2;
const PAGE = 500;
/** Tries of an edit that other writers overtake. */
const EDITS_MAX = 20;

type Method = "GET" | "POST" | "PATCH" | "DELETE";

export interface KubeCall {
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  type?: "application/json" | "application/merge-patch+json" | "application/strategic-merge-patch+json";
  signal?: AbortSignal | undefined;
}

export interface KubeClientOptions {
  account: Account;
  patienceMs?: number;
}

const metaSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string(), resourceVersion: z.string() }),
});
export type Named = z.output<typeof metaSchema>;

const pageSchema = z.object({
  metadata: z.object({ resourceVersion: z.string().default(""), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullish(),
});

export class KubeClient {
  readonly server: string;
  readonly #account: Account;
  readonly #agent: Agent;
  readonly #patienceMs: number;

  constructor({ account, patienceMs = PATIENCE_MS }: KubeClientOptions) {
    this.#account = account;
    this.server = account.server;
    this.#patienceMs = patienceMs;
    this.#agent = new Agent({
      connect: { ...account.tls, timeout: CONNECT_WAIT_MS },
      headersTimeout: TRY_WAIT_MS,
      bodyTimeout: 0,
      keepAliveTimeout: 30_000,
    });
  }

  async json<Schema extends z.ZodType>(
    schema: Schema,
    method: Method,
    path: string,
    call: KubeCall = {},
  ): Promise<z.output<Schema>> {
    return schema.parse(JSON.parse((await this.bytes(method, path, ANSWER_BYTES_MAX, call)).toString("utf8")));
  }

  /** Null when the API server does not know the object. */
  async find<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    call: KubeCall = {},
  ): Promise<z.output<Schema> | null> {
    try {
      return await this.json(schema, "GET", path, call);
    } catch (error) {
      if (isRefusal(error, 404)) return null;
      throw error;
    }
  }

  /** The object of that name, also when an earlier try, or another server, has made it. */
  async create<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    body: { metadata: { name: string } },
    call: KubeCall = {},
  ): Promise<{ object: z.output<Schema>; made: boolean }> {
    for (;;) {
      try {
        return { object: await this.json(schema, "POST", path, { ...call, body }), made: true };
      } catch (error) {
        if (!isRefusal(error, 409) || error.reason !== "AlreadyExists") throw error;
      }
      const object = await this.find(schema, `${path}/${body.metadata.name}`, call);
      if (object !== null) return { object, made: false };
    }
  }

  /** As `create`, for an object that this account must not read. Answers whether this call made it. */
  async put(path: string, body: unknown, call: KubeCall = {}): Promise<boolean> {
    try {
      await this.bytes("POST", path, ANSWER_BYTES_MAX, { ...call, body });
      return true;
    } catch (error) {
      if (isRefusal(error, 409) && error.reason === "AlreadyExists") return false;
      throw error;
    }
  }

  /** Changes an object as a merge patch says, which is made again from the newest object when another writer was faster. */
  async edit<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    change: (now: z.output<Schema>) => Record<string, unknown> | null,
    call: KubeCall = {},
  ): Promise<z.output<Schema> | null> {
    for (let round = 0; ; round += 1) {
      const text = await this.find(z.unknown(), path, call);
      if (text === null) return null;
      const now = schema.parse(text);
      const { resourceVersion } = metaSchema.parse(text).metadata;
      const patch = change(now);
      if (patch === null) return now;
      const metadata = { ...(patch.metadata as object | undefined), resourceVersion };
      try {
        const body = { ...patch, metadata };
        return await this.json(schema, "PATCH", path, { ...call, body, type: "application/merge-patch+json" });
      } catch (error) {
        if (isRefusal(error, 404)) return null;
        if (!isRefusal(error, 409) || round >= EDITS_MAX) throw error;
        await delay(backoffMs(round, RETRY), undefined, { ...(call.signal ? { signal: call.signal } : {}) });
      }
    }
  }

  /** Only that very object: one of the same name and another uid, or of another version where one is named, is left alone. */
  async remove(
    path: string,
    { uid, resourceVersion }: { uid: string; resourceVersion?: string },
    graceSeconds: number,
    call: KubeCall = {},
  ): Promise<void> {
    const preconditions = { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    const body = {
      ...{ apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" },
      ...{ gracePeriodSeconds: graceSeconds, preconditions },
    };
    try {
      await this.bytes("DELETE", path, ANSWER_BYTES_MAX, { ...call, body });
    } catch (error) {
      if (!isRefusal(error, 404, 409)) throw error;
    }
  }

  /** Every object that the query selects, and the version of the list. */
  async list<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    call: KubeCall = {},
  ): Promise<{ items: z.output<Schema>[]; resourceVersion: string }> {
    for (;;) {
      try {
        return await this.#pages(schema, path, call);
      } catch (error) {
        // The version of the first page has expired before the last one was read.
        if (!isRefusal(error, 410)) throw error;
      }
    }
  }

  async #pages<Schema extends z.ZodType>(schema: Schema, path: string, call: KubeCall) {
    const items: z.output<Schema>[] = [];
    let next: string | undefined;
    let resourceVersion = "";
    do {
      const query = { ...call.query, limit: PAGE, continue: next };
      const page = await this.json(pageSchema, "GET", path, { ...call, query });
      for (const item of page.items ?? []) items.push(schema.parse(item));
      ({ resourceVersion } = page.metadata);
      next = page.metadata.continue || undefined;
    } while (next !== undefined);
    return { items, resourceVersion };
  }

  /** Lines of an answer that lasts, one JSON value each, until the API server ends it. Not tried again. */
  async *lines(path: string, call: KubeCall & { signal: AbortSignal }): AsyncGenerator<unknown> {
    const answer = await this.#send("GET", path, call, call.signal);
    try {
      let rest = Buffer.alloc(0);
      for await (const chunk of answer.body) {
        rest = Buffer.concat([rest, chunk as Buffer]);
        for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
          const line = rest.subarray(0, end);
          rest = rest.subarray(end + 1);
          if (line.length > 0) yield JSON.parse(line.toString("utf8"));
        }
        if (rest.length > LINE_BYTES_MAX) throw new Error("a line of the API server is too long");
      }
    } finally {
      answer.body.on("error", () => {}).destroy();
    }
  }

  /** The whole answer, which may have `bytesMax` bytes. */
  async bytes(method: Method, path: string, bytesMax: number, call: KubeCall = {}): Promise<Buffer> {
    const endMs = performance.now() + this.#patienceMs;
    for (let attempt = 0; ; attempt += 1) {
      call.signal?.throwIfAborted();
      let waitMs = backoffMs(attempt, RETRY);
      try {
        return await this.#once(method, path, bytesMax, call);
      } catch (error) {
        if (call.signal?.aborted) throw call.signal.reason;
        if (error instanceof KubeRefusal && error.retryAfterMs === undefined) throw error;
        if (error instanceof KubeRefusal) waitMs = Math.max(waitMs, error.retryAfterMs ?? 0);
        if (this.#agent.destroyed || performance.now() + waitMs > endMs) throw this.#silent(error);
      }
      await delay(waitMs, undefined, call.signal ? { signal: call.signal } : {}).catch(() => {}); // the next round tells
    }
  }

  async #once(method: Method, path: string, bytesMax: number, call: KubeCall): Promise<Buffer> {
    const timeout = AbortSignal.timeout(TRY_WAIT_MS);
    const answer = await this.#send(
      method,
      path,
      call,
      call.signal ? AbortSignal.any([call.signal, timeout]) : timeout,
    );
    try {
      const whole = await upTo(answer.body, bytesMax);
      if (whole !== null) return whole;
      throw new KubeRefusal(413, `an answer of the API server has more than ${bytesMax} bytes`, undefined);
    } finally {
      answer.body.on("error", () => {}).destroy(); // the rest of the answer, where there is one
    }
  }

  async #send(method: Method, path: string, { query = {}, body, type }: KubeCall, signal: AbortSignal) {
    const url = new URL(`${this.server}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.append(name, String(value));
    const token = await this.#account.token();
    const answer = await request(url, {
      method,
      dispatcher: this.#agent,
      headers: {
        accept: "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": type ?? "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
    });
    if (answer.statusCode < 400) return answer;
    const said = await upTo(answer.body, REFUSAL_BYTES_MAX);
    answer.body.on("error", () => {}).destroy();
    const after = answer.headers["retry-after"];
    throw new KubeRefusal(
      answer.statusCode,
      said?.toString("utf8") ?? "",
      typeof after === "string" ? after : undefined,
    );
  }

  get isClosed(): boolean {
    return this.#agent.destroyed;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #silent(cause: unknown): PlatformError {
    const said = cause instanceof Error ? ("code" in cause && String(cause.code)) || cause.message : String(cause);
    return new PlatformError("unavailable", `The Kubernetes API at ${this.server} does not answer (${said}).`, {
      cause,
    });
  }
}
