/** Connections to providers: one pool of kept-alive sockets per origin, to addresses that may be dialled only. */
import { createRequire } from "node:module";
import type { buildConnector, Dispatcher, Pool } from "undici";
import { GatewayError } from "../../contract/gateway-errors.ts";
import { type AddressGuard, addressGuard } from "../../lib/guarded-lookup.ts";
import { UntranslatableAnswer } from "../providers/chat-translation.ts";

export interface Upstream {
  origin: string;
  /** Path of the base address, without a trailing slash. */
  basePath: string;
  dispatcher: Pick<Dispatcher, "dispatch">;
}

export interface PooledUpstream extends Upstream {
  pool: Pool;
}

export interface UpstreamsOptions {
  privateAddresses: boolean;
  connectTimeoutMs: number;
}

/** Idle sockets are closed before the providers' own load balancers do it, most of which wait a minute. */
const KEEP_ALIVE_MS = 30_000;
/** Tenants choose addresses; pools of those nobody used lately are given up beyond this many. */
const ORIGINS_MAX = 1000;

const require = createRequire(import.meta.url);
/** Loaded with the first connection to a provider, because a server without models need not carry it (7 MB). */
const undici = (): typeof import("undici") => require("undici") as typeof import("undici");

export class Upstreams {
  readonly #pools = new Map<string, Pool>();
  readonly #parsed = new Map<string, PooledUpstream>();
  readonly #options: UpstreamsOptions;
  readonly #guard: AddressGuard;
  #connect: buildConnector.connector | null = null;

  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.#guard = addressGuard({ privateAddresses: options.privateAddresses, refused });
  }

  /** The pool for a base address; throws when the address cannot be one. */
  at(baseUrl: string): PooledUpstream {
    const known = this.#parsed.get(baseUrl);
    if (known) return known;
    const url = parseBaseUrl(baseUrl);
    this.#guard.check(url.hostname);
    const pool = this.#pool(url.origin);
    const upstream = { origin: url.origin, basePath: url.pathname.replace(/\/+$/, ""), dispatcher: pool, pool };
    this.#parsed.set(baseUrl, upstream);
    return upstream;
  }

  async stop(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    this.#parsed.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #pool(origin: string): Pool {
    const known = this.#pools.get(origin);
    if (known) return known;
    if (this.#pools.size >= ORIGINS_MAX) this.#evict();
    const { buildConnector, Pool } = undici();
    this.#connect ??= buildConnector({ timeout: this.#options.connectTimeoutMs, lookup: this.#guard.lookup });
    const pool = new Pool(origin, {
      connect: this.#connect,
      // A stream holds its socket for minutes: the number of sockets is the number of requests under way.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    });
    this.#pools.set(origin, pool);
    return pool;
  }

  #evict(): void {
    // Maps keep insertion order; the parsed addresses are cheap to make again.
    this.#parsed.clear();
    for (const [origin, pool] of this.#pools) {
      if (pool.stats.running > 0 || pool.stats.queued > 0) continue;
      this.#pools.delete(origin);
      // Nothing is under way on it, so closing cannot fail in a way anybody waits for.
      pool.close().catch(() => {});
      return;
    }
  }
}

function parseBaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:") || url.username || url.search || url.hash) {
    throw new GatewayError(
      "PROVIDER_NOT_CONFIGURED",
      "spec.config.baseUrl of the connection must be an http or https address without credentials, query or fragment.",
    );
  }
  return url;
}

const refused = (host: string): GatewayError =>
  new GatewayError("PROVIDER_ADDRESS_REFUSED", undefined, { detail: { host } });

/** What went wrong between the gateway and a provider, in the gateway's own words. */
export function providerFailure(error: unknown, title: string, begun = false): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof UntranslatableAnswer)
    return new GatewayError("PROVIDER_BAD_RESPONSE", error.message, { cause: error });
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const options = { cause: error, detail: { code } };
  switch (code) {
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return new GatewayError("PROVIDER_CONNECT_TIMEOUT", `No connection to ${title} came about in time.`, options);
    case "UND_ERR_HEADERS_TIMEOUT":
      return new GatewayError("PROVIDER_TIMEOUT", `${title} did not begin to answer in time.`, options);
    case "UND_ERR_BODY_TIMEOUT":
      return new GatewayError(
        "PROVIDER_IDLE_TIMEOUT",
        `${title} stopped sending in the middle of its answer.`,
        options,
      );
    default:
      // Malformed HTTP, and malformed compression.
      if (error instanceof undici().errors.HTTPParserError || code.startsWith("Z_")) {
        return new GatewayError("PROVIDER_BAD_RESPONSE", `The answer of ${title} is malformed.`, options);
      }
  }
  const what = begun ? "broke off its answer" : "could not be reached";
  return new GatewayError("PROVIDER_UNAVAILABLE", `${title} ${what}${code ? ` (${code})` : ""}.`, options);
}
