/**
 * The test vectors of the SDKs: what a call sends, what a server answers, what comes out. A program in the language of
 * the SDK makes the calls against the server here, and prints one outcome for each vector as a line of JSON.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const FOLDER = join(import.meta.dirname, "../../sdk/vectors");

interface Expectation {
  method?: string;
  path?: string;
  /** `*`: any; `same`: as in the request before; null: absent. */
  headers?: Record<string, string | null>;
  body?: unknown;
  text?: string;
}

interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
  text?: string;
}

export interface Vector {
  name: string;
  call: string;
  args: Record<string, unknown>;
  exchanges: { expect: Expectation; reply: Reply | "hang up" }[];
  returns?: unknown;
  throws?: Record<string, unknown>;
  /** Tokens that the command line's file has for this server, before the call and after it. */
  profile?: Record<string, unknown>;
  keeps?: Record<string, unknown>;
}

export interface Outcome {
  returns?: unknown;
  throws?: Record<string, unknown>;
}

export const VECTORS: readonly Vector[] = globSync(join(FOLDER, "*.json"))
  .sort()
  .flatMap((file) => JSON.parse(readFileSync(file, "utf8")) as Vector[]);

export interface Replay {
  /** The address of a vector's server. */
  url: string;
  /** Fails unless the outcome and all requests of the vector were as it says. */
  check(index: number, outcome: Outcome | undefined): void;
  stop(): Promise<void>;
}

/** The vector of number N is served below `/N`. `dataDir` gets the command line's file, with a profile for each of them. */
export async function startReplay(dataDir: string): Promise<Replay> {
  const plays = VECTORS.map((vector) => new Play(vector));
  const server = createServer((request, response) => {
    const [, index = "none", path = ""] = /^\/(\d+)(\/.*)$/.exec(request.url ?? "") ?? [];
    const play = plays[Number(index)];
    if (play) void play.answer(request, response, path);
    else send(response, { status: 404 });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const file = join(dataDir, "profiles.json");
  writeFileSync(file, JSON.stringify({ current: "local", profiles: profilesOf(url) }));
  return {
    url,
    check(index, outcome) {
      const play = plays[index];
      assert.ok(play && outcome, "the program has not tried this vector");
      play.check(outcome);
      const { profiles } = JSON.parse(readFileSync(file, "utf8")) as { profiles: ReturnType<typeof profilesOf> };
      const tokens = profiles[index]?.tokens;
      assert.deepEqual({ ...tokens, ...VECTORS[index]?.keeps }, { ...tokens });
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const profilesOf = (url: string): Record<string, { url: string; workspace: string; tokens?: object }> =>
  Object.fromEntries(
    VECTORS.map(({ profile }, index) => [
      index,
      { url: `${url}/${index}`, workspace: "main", ...(profile && { tokens: profile }) },
    ]),
  );

class Play {
  readonly #vector: Vector;
  #next = 0;
  #before: IncomingMessage["headers"] = {};
  readonly #wrong: string[] = [];

  constructor(vector: Vector) {
    this.#vector = vector;
  }

  async answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const sent = await text(request);
    // Calls of a sandbox begin with its record.
    if (path === "/v0/sandboxes/box" && request.method === "GET")
      return send(response, { body: { metadata: { name: "box", workspace: "main" }, spec: {} } });
    const exchange = this.#vector.exchanges[this.#next];
    this.#next += 1;
    if (!exchange) {
      this.#wrong.push(`one request too many: ${request.method} ${path}`);
      return send(response, { status: 500, body: { error: "too_many" } });
    }
    this.#compare(exchange.expect, request, path, sent);
    this.#before = request.headers;
    if (exchange.reply === "hang up") request.socket.destroy();
    else send(response, exchange.reply);
  }

  check({ returns, throws }: Outcome): void {
    const { exchanges } = this.#vector;
    assert.deepEqual(this.#wrong, []);
    if (this.#vector.throws) {
      assert.ok(throws, `it returned ${JSON.stringify(returns)}`);
      assert.deepEqual({ ...throws, ...this.#vector.throws }, throws);
    } else {
      assert.equal(throws, undefined, JSON.stringify(throws));
      assert.deepEqual(returns, this.#vector.returns);
    }
    assert.equal(this.#next, exchanges.length, "requests");
  }

  #compare(expect: Expectation, request: IncomingMessage, path: string, sent: string): void {
    const differs = (what: string, wanted: unknown, got: unknown): void => {
      if (!matches(wanted, got))
        this.#wrong.push(
          `${what} of request ${this.#next}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`,
        );
    };
    if (expect.method !== undefined) differs("method", expect.method, request.method);
    if (expect.path !== undefined) differs("path", expect.path, path);
    if (expect.text !== undefined) differs("body", expect.text, sent);
    if (expect.body !== undefined) differs("body", expect.body, JSON.parse(sent));
    for (const [name, wanted] of Object.entries(expect.headers ?? {}))
      differs(name, wanted === "same" ? this.#before[name] : wanted, request.headers[name] ?? null);
  }
}

/** `*` stands for anything that is there. */
function matches(wanted: unknown, got: unknown): boolean {
  if (wanted === "*") return got !== undefined && got !== null && got !== "";
  if (typeof wanted !== "object" || wanted === null) return wanted === got;
  if (typeof got !== "object" || got === null) return false;
  const [want, have] = [Object.entries(wanted), new Map(Object.entries(got))];
  return want.length === have.size && want.every(([key, value]) => matches(value, have.get(key)));
}

function send(response: ServerResponse, { status = 200, headers = {}, body, text: said }: Reply): void {
  // Some clients send a request again by themselves when a kept connection breaks; these connections are not kept.
  response.writeHead(status, { "content-type": "application/json", connection: "close", ...headers });
  response.end(said ?? JSON.stringify(body ?? null));
}

/** What a program has printed: an outcome on each line. */
export const outcomesIn = (output: string): Outcome[] =>
  output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Outcome);
