/** Requests to one repository of a registry: authentication, redirects, and what the status of an answer means. */
import { SECOND_MS } from "../lib/time/clock.ts";
import type { Credentials } from "./credentials.ts";
import { broken, RegistryProblem } from "./problem.ts";
import { answerChallenge } from "./token.ts";
import { discard, type Received, type Transport } from "./transport.ts";

export interface RepositoryOptions {
  /** Host and port to dial. */
  host: string;
  /** Without TLS. */
  plain: boolean;
  /** The path of the repository on that host. */
  path: string;
  /** Asked for when the registry asks. */
  credentials: () => Promise<Credentials | null>;
  transport: Transport;
}

export interface Request {
  method?: "GET" | "HEAD";
  headers?: Record<string, string>;
  signal: AbortSignal;
}

/** Where an image is read from. */
export interface Source {
  /** Throws a RegistryProblem for every answer that is not a success. `rest`: `manifests/1.2`, `blobs/sha256:…`. */
  send(rest: string, request: Request): Promise<Received>;
  /** The file with a blob, for a source on this machine; null when the blob has to be asked for. */
  fileOf?(digest: string): Promise<string | null>;
}

interface Answer {
  received: Received;
  from: URL;
}

const REDIRECTS_MAX = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export class Repository implements Source {
  readonly #options: RepositoryOptions;
  #authorization: string | null = null;
  #credentials: Credentials | null = null;

  constructor(options: RepositoryOptions) {
    this.#options = options;
  }

  get host(): string {
    return this.#options.host;
  }

  async send(rest: string, request: Request): Promise<Received> {
    const { host, plain, path } = this.#options;
    const url = new URL(`${plain ? "http" : "https"}://${host}/v2/${path}/${rest}`);
    let { received, from } = await this.#follow(url, request);
    // A token is renewed once: it may have expired during a long pull. Only the registry itself may ask for credentials.
    const isAsked = received.status === 401 && from.origin === url.origin;
    if (isAsked && (await this.#authenticate(received, request.signal)))
      ({ received, from } = await this.#follow(url, request));
    if (received.status >= 200 && received.status < 300) return received;
    discard(received);
    throw this.#problem(received, from.host, from.origin === url.origin);
  }

  async #authenticate(received: Received, signal: AbortSignal): Promise<boolean> {
    const { transport, plain, path } = this.#options;
    discard(received);
    this.#credentials = await this.#options.credentials();
    const challenge = received.headers["www-authenticate"] ?? "";
    const asked = { transport, credentials: this.#credentials, plain, scope: `repository:${path}:pull`, signal };
    this.#authorization = await answerChallenge(challenge, asked);
    return this.#authorization !== null;
  }

  /** Credentials stay with the registry: a redirect to another origin is followed without them. `from`: who answered. */
  async #follow(first: URL, { method = "GET", headers = {}, signal }: Request): Promise<Answer> {
    const { transport, plain } = this.#options;
    let url = first;
    for (let hops = 0; hops <= REDIRECTS_MAX; hops++) {
      const own = url.origin === first.origin && this.#authorization ? { authorization: this.#authorization } : {};
      const received = await transport.send(url, { method, headers: { ...headers, ...own }, signal });
      if (!REDIRECTS.has(received.status)) return { received, from: url };
      discard(received);
      const { location = "" } = received.headers;
      const next = URL.canParse(location, url.href) ? new URL(location, url) : null;
      if (!next || !/^https?:$/.test(next.protocol) || next.username !== "")
        throw broken(`${url.host} redirects to no address`);
      if (next.protocol === "http:" && !plain)
        throw new RegistryProblem("refused", `${url.host} redirects to ${next.host} without https`);
      url = next;
    }
    throw broken(`${first.host} redirects more than ${REDIRECTS_MAX} times`);
  }

  /** `isOwn`: whether the registry itself answered, not a host that it redirects to. */
  #problem({ status, headers }: Received, host: string, isOwn: boolean): RegistryProblem {
    const credentials = this.#credentials;
    const waitMs = waitIn(headers["retry-after"]);
    const wait = waitMs === undefined ? {} : { waitMs };
    if (status === 404) return new RegistryProblem("not_found", `${host} does not have it (404 not found)`);
    if (status === 401 || status === 403)
      return new RegistryProblem(
        "unauthorized",
        // Whose credentials they are is the operator's business.
        credentials && isOwn
          ? `${host} refuses the credentials (${status} unauthorized)`
          : `${host} refuses access without credentials (${status} unauthorized): it does not exist there, or is private`,
      );
    if (status === 429) {
      const when = waitMs === undefined ? "" : `; it asks to wait ${Math.ceil(waitMs / SECOND_MS)} s`;
      return new RegistryProblem("rate_limited", `${host} allows no more pulls now (429 rate limited)${when}`, wait);
    }
    if (status >= 500) return new RegistryProblem("unreachable", `${host} answers ${status}`, wait);
    return broken(`${host} answers ${status}`);
  }
}

/** Seconds, or a date. */
function waitIn(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * SECOND_MS : Date.parse(header) - Date.now();
  return ms >= 0 ? ms : undefined;
}
