/** The providers' origins: a connection pool for each, restricted to allowed addresses. */
import { GatewayError } from "../contract/gateway-errors.ts";
import { ResponseSyntaxError } from "../http/http1/response-parser.ts";
import { UpstreamPool } from "../http/http1/upstream-pool.ts";
import { type AddressGuard, addressGuard } from "../lib/network/guarded-lookup.ts";
import { Sweeper } from "../lib/sweeper.ts";
import {
  type AnswerSink,
  ProviderCall,
  type ProviderOrigin,
  type RunningCall,
  type WireRequest,
} from "./provider-call.ts";
import { createDialer } from "./provider-dial.ts";
import { type UpgradeRequest, type UpgradeResult, upgradeAt } from "./provider-upgrade.ts";
import { UntranslatableAnswer } from "./providers/chat-translation.ts";

export interface Upstream {
  /** Path of the base address, without a trailing slash. */
  basePath: string;
  send(request: WireRequest, sink: AnswerSink): RunningCall;
  /** Asks for a WebSocket; absent where no provider is asked. */
  upgrade?(request: UpgradeRequest, signal: AbortSignal): Promise<UpgradeResult>;
}

export interface UpstreamsOptions {
  privateAddresses: boolean;
  connectTimeoutMs: number;
  /** Distance between two looks at the deadlines. */
  tickMs: number;
}

/** Idle connections are closed before the providers' own load balancers do it, most of which wait a minute. */
const IDLE_MAX_MS = 30_000;
/** Tenants choose addresses; those that were read are forgotten beyond this many. */
const ADDRESSES_MAX = 1000;

export class Upstreams {
  /** Looks after the deadlines of everything that is under way to providers. */
  readonly sweeper: Sweeper;
  readonly #pool: UpstreamPool;
  readonly #parsed = new Map<string, Upstream>();
  readonly #guard: AddressGuard;
  readonly #dial: ReturnType<typeof createDialer>;

  constructor({ privateAddresses, connectTimeoutMs, tickMs }: UpstreamsOptions) {
    this.#guard = addressGuard({ privateAddresses, refused });
    this.#dial = createDialer({ lookup: this.#guard.lookup, timeoutMs: connectTimeoutMs });
    this.sweeper = new Sweeper(tickMs);
    // A stream holds its connection for minutes: the number of connections is the number of requests under way.
    const perKeyMax = Number.POSITIVE_INFINITY;
    this.#pool = new UpstreamPool({ perKeyMax, idleMaxMs: IDLE_MAX_MS, now: () => performance.now() });
    this.sweeper.add(this.#pool);
  }

  /** The upstream of a base URL; throws when the URL is invalid. */
  at(baseUrl: string): Upstream {
    const known = this.#parsed.get(baseUrl);
    if (known) return known;
    const url = parseBaseUrl(baseUrl);
    this.#guard.check(url.hostname);
    const origin: ProviderOrigin = { key: url.origin, host: url.host, dial: () => this.#dial(url) };
    const upstream: Upstream = {
      basePath: url.pathname.replace(/\/+$/, ""),
      send: (request, sink) => new ProviderCall(this.#pool, origin, request, sink),
      upgrade: (request, signal) => upgradeAt(this.#pool, origin, request, signal),
    };
    if (this.#parsed.size >= ADDRESSES_MAX) this.#parsed.clear();
    this.#parsed.set(baseUrl, upstream);
    return upstream;
  }

  async stop(): Promise<void> {
    this.sweeper.stop();
    this.#parsed.clear();
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

/** Turns a network error between the gateway and a provider into a GatewayError. */
export function providerFailure(error: unknown, title: string, begun = false): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof UntranslatableAnswer)
    return new GatewayError("PROVIDER_BAD_RESPONSE", error.message, { cause: error });
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const options = { cause: error, detail: { code } };
  switch (code) {
    case "CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return new GatewayError("PROVIDER_CONNECT_TIMEOUT", `No connection to ${title} came about in time.`, options);
    case "CERTIFICATE_REFUSED":
      return new GatewayError(
        "PROVIDER_CERTIFICATE_REFUSED",
        `${title} could not be reached safely: its certificate is refused (${(error as Error).message}).`,
        options,
      );
    case "FIRST_BYTE_TIMEOUT":
      return new GatewayError("PROVIDER_TIMEOUT", `${title} did not begin to answer in time.`, options);
    case "IDLE_TIMEOUT":
      return new GatewayError(
        "PROVIDER_IDLE_TIMEOUT",
        `${title} stopped sending in the middle of its answer.`,
        options,
      );
    default:
      // Malformed HTTP, and malformed compression.
      if (error instanceof ResponseSyntaxError || code.startsWith("Z_")) {
        return new GatewayError("PROVIDER_BAD_RESPONSE", `The answer of ${title} is malformed.`, options);
      }
  }
  const what = begun ? "broke off its answer" : "could not be reached";
  return new GatewayError("PROVIDER_UNAVAILABLE", `${title} ${what}${code ? ` (${code})` : ""}.`, options);
}
