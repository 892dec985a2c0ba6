/** The client of certificate authorities that speak ACME (RFC 8555). One client is one account at one authority. */
import { X509Certificate } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import type { Agent } from "undici";
import { z } from "zod";
import { SECOND_MS } from "../lib/time/clock.ts";
import { makeRequest } from "../lib/x509/certificate.ts";
import { keyAuthorization, newAccountKey, signedMessage } from "./jws.ts";
import { REVOCATION_REASONS, type RevocationReason } from "./revocation-reason.ts";

const REQUEST_MS = 30 * SECOND_MS;
/** How long the authority may take to check a challenge or to sign. */
const READY_MS = 180 * SECOND_MS;
/** First pause between two looks; it doubles up to the longest. */
const POLL_MS = 100;
const POLL_MAX_MS = 5 * SECOND_MS;
const NONCE_TRIES = 5;
const BODY_MAX = 1024 * 1024;

/** Loaded at first use: a server without an authority need not carry it. */
const undici = (): typeof import("undici") => createRequire(import.meta.url)("undici") as typeof import("undici");

export type ChallengeType = "http-01" | "tls-alpn-01" | "dns-01";

export interface AcmeSettings {
  /** URL of the authority's directory. */
  directory: string;
  /** Whom the authority tells about trouble; null for nobody. */
  email: string | null;
  /** PEM: whom the authority's own address is trusted by, where that is not a public authority. */
  ca: string | null;
  challenge: ChallengeType;
  /** Program that writes DNS records for dns-01. */
  hook: string | null;
}

export interface AcmeAccount {
  url: string;
  key: string;
}

export interface Challenge {
  /** Without the `*.` of a wildcard. */
  host: string;
  token: string;
  keyAuthorization: string;
}

/** Makes the answer to a challenge available; returns the function that takes the answer away. */
export type Solver = (challenge: Challenge) => Promise<() => Promise<void>>;

export class AcmeError extends Error {
  /** How long the authority asks to wait; null when it says nothing. */
  readonly retryAfterMs: number | null;
  /** The authority's word for the problem (RFC 8555, 6.7); undefined where it gave none. */
  readonly problem: string | undefined;
  /** Names that the authority's subproblems are about (RFC 8555, 6.7.1). */
  readonly identifiers: readonly string[];

  constructor(
    message: string,
    retryAfterMs: number | null = null,
    {
      problem,
      identifiers = [],
      ...options
    }: ErrorOptions & { problem?: string | undefined; identifiers?: readonly string[] } = {},
  ) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
    this.problem = problem;
    this.identifiers = identifiers;
  }

  /**
   * Whether the refusal is about one of these names or a domain above it, and not about the whole account. Authorities
   * say so in subproblems, or quote the name in the text (`too many certificates already issued for "example.com"`).
   */
  isAbout(names: readonly string[]): boolean {
    const said = new Set(
      [...this.identifiers, ...(this.message.toLowerCase().match(NAME_IN_TEXT) ?? [])].map(withoutStar),
    );
    return names.some((name) => domainsOf(withoutStar(name)).some((domain) => said.has(domain)));
  }
}

const NAME_IN_TEXT = /[a-z0-9*-]+(?:\.[a-z0-9-]+)+/g;

const withoutStar = (name: string): string => name.replace(/^\*\./, "");

/** The name and the domains above it, without the top level. */
function domainsOf(name: string): string[] {
  const labels = name.toLowerCase().split(".");
  return labels.slice(0, -1).map((_, at) => labels.slice(at).join("."));
}

const directoryShape = z.object({
  newNonce: z.url(),
  newAccount: z.url(),
  newOrder: z.url(),
  revokeCert: z.url(),
});
const problemShape = z.object({
  type: z.string().optional(),
  detail: z.string().optional(),
  subproblems: z
    .array(z.object({ identifier: z.object({ value: z.string() }).optional() }))
    .optional()
    .catch(undefined),
});
const orderShape = z.object({
  status: z.string(),
  authorizations: z.array(z.url()),
  finalize: z.url(),
  certificate: z.url().optional(),
  error: problemShape.optional(),
});
const authorizationShape = z.object({
  status: z.string(),
  identifier: z.object({ value: z.string() }),
  challenges: z.array(
    z.object({ type: z.string(), url: z.url(), token: z.string().optional(), error: problemShape.optional() }),
  ),
});

interface Answer {
  status: number;
  location: string | undefined;
  retryAfterMs: number | null;
  text: string;
}

export class AcmeClient {
  readonly #settings: AcmeSettings;
  readonly #agent: Agent;
  #directory: z.output<typeof directoryShape> | null = null;
  #nonce: string | null = null;
  #account: AcmeAccount | null = null;

  constructor(settings: AcmeSettings) {
    this.#settings = settings;
    const timeouts = { headersTimeout: REQUEST_MS, bodyTimeout: REQUEST_MS };
    const { ca } = settings;
    this.#agent = new (undici().Agent)({
      ...timeouts,
      connect: { timeout: REQUEST_MS, ...(ca === null ? {} : { ca }) },
    });
  }

  /** Uses an account that exists already. */
  use(account: AcmeAccount): void {
    this.#account = account;
  }

  /** Makes an account, in the name of an operator who accepts the authority's terms by configuring it. */
  async register(): Promise<AcmeAccount> {
    const key = newAccountKey();
    const { email } = this.#settings;
    const contact = email === null ? {} : { contact: [`mailto:${email}`] };
    const { newAccount } = await this.#urls();
    const answer = await this.#post(newAccount, { termsOfServiceAgreed: true, ...contact }, { url: "", key });
    if (answer.location === undefined) throw new AcmeError("The authority made no account.");
    this.#account = { url: answer.location, key };
    return this.#account;
  }

  /** Asks for one certificate for all of the names. */
  async issue(names: readonly string[], solve: Solver): Promise<{ chain: string; key: string }> {
    const { newOrder } = await this.#urls();
    const identifiers = names.map((value) => ({ type: "dns", value }));
    const made = await this.#post(newOrder, { identifiers });
    const orderUrl = made.location;
    if (orderUrl === undefined) throw new AcmeError("The authority made no order.");
    for (const url of read(orderShape, made).authorizations) await this.#authorize(url, solve);
    const { request: csr, key } = makeRequest(names);
    await this.#post(read(orderShape, made).finalize, { csr: csr.toString("base64url") });
    const done = await this.#until(orderUrl, orderShape, ({ status }) => status === "valid" || status === "invalid");
    if (done.certificate === undefined)
      throw new AcmeError(`The order was refused: ${done.error?.detail ?? done.status}.`);
    return { chain: (await this.#post(done.certificate, null)).text, key };
  }

  /**
   * Declares that a certificate is no longer to be trusted. The account that asked for the certificate signs, or with
   * `key` the certificate's own key, which authorities require for the reason keyCompromise.
   */
  async revoke(chain: string, reason: RevocationReason = "unspecified", key?: string): Promise<void> {
    const { revokeCert } = await this.#urls();
    const payload = {
      certificate: new X509Certificate(chain).raw.toString("base64url"),
      reason: REVOCATION_REASONS[reason],
    };
    try {
      await this.#post(revokeCert, payload, key === undefined ? this.#requireAccount() : { url: "", key });
    } catch (error) {
      if (!(error instanceof AcmeError) || error.problem !== ALREADY_REVOKED) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #authorize(url: string, solve: Solver): Promise<void> {
    const authorization = read(authorizationShape, await this.#post(url, null));
    if (authorization.status === "valid") return;
    const host = authorization.identifier.value;
    const type = this.#settings.challenge;
    const challenge = authorization.challenges.find((one) => one.type === type);
    if (challenge?.token === undefined) throw new AcmeError(`The authority offers no ${type} for ${host}.`);
    const { key } = this.#requireAccount();
    const { token } = challenge;
    const withdraw = await solve({ host, token, keyAuthorization: keyAuthorization(key, token) });
    try {
      await this.#post(challenge.url, {});
      const done = await this.#until(url, authorizationShape, ({ status }) => status !== "pending");
      if (done.status === "valid") return;
      const why = done.challenges.find((one) => one.error !== undefined)?.error?.detail ?? done.status;
      throw new AcmeError(`The authority could not check ${host} (${type}): ${why}`);
    } finally {
      await withdraw();
    }
  }

  async #until<T>(url: string, shape: z.ZodType<T>, isDone: (value: T) => boolean): Promise<T> {
    const deadline = performance.now() + READY_MS;
    for (let waitMs = POLL_MS; ; waitMs = Math.min(waitMs * 2, POLL_MAX_MS)) {
      const answer = await this.#post(url, null);
      const value = read(shape, answer);
      if (isDone(value)) return value;
      if (performance.now() > deadline) throw new AcmeError("The authority did not decide in time.");
      await pause(Math.min(answer.retryAfterMs ?? waitMs, READY_MS));
    }
  }

  #requireAccount(): AcmeAccount {
    if (this.#account === null) throw new Error("the client has no account");
    return this.#account;
  }

  /** `payload`: null to read. */
  async #post(url: string, payload: object | null, account = this.#requireAccount()): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      const nonce = await this.#takeNonce();
      const body = signedMessage(account.key, { url, nonce, account: account.url || undefined }, payload);
      const answer = await this.#send(url, "POST", body);
      if (answer.status < 400) return answer;
      const problem = problemOf(answer.text);
      if (problem.type !== BAD_NONCE || tries === NONCE_TRIES)
        throw new AcmeError(
          `The authority answered ${answer.status}: ${problem.detail ?? problem.type ?? "no reason"}`,
          answer.retryAfterMs,
          {
            problem: problem.type,
            identifiers: problem.subproblems?.flatMap(({ identifier }) => identifier?.value ?? []) ?? [],
          },
        );
    }
  }

  async #takeNonce(): Promise<string> {
    if (this.#nonce === null) await this.#send((await this.#urls()).newNonce, "HEAD");
    const nonce = this.#nonce;
    this.#nonce = null;
    if (nonce === null) throw new AcmeError("The authority gave no nonce.");
    return nonce;
  }

  async #urls(): Promise<z.output<typeof directoryShape>> {
    this.#directory ??= read(directoryShape, await this.#send(this.#settings.directory, "GET"));
    return this.#directory;
  }

  async #send(url: string, method: "GET" | "HEAD" | "POST", body?: string): Promise<Answer> {
    try {
      const headers = body === undefined ? {} : { "content-type": "application/jose+json" };
      const options = { method, dispatcher: this.#agent, headers: { ...headers, "user-agent": "berth" } };
      const response = await undici().request(url, { ...options, ...(body === undefined ? {} : { body }) });
      const { "replay-nonce": nonce, location, "retry-after": after } = response.headers;
      if (typeof nonce === "string") this.#nonce = nonce;
      return {
        status: response.statusCode,
        location: typeof location === "string" ? location : undefined,
        retryAfterMs: retryAfterMs(after),
        text: await textOf(response.body),
      };
    } catch (error) {
      const reason = error instanceof Error ? error.message || error.name : String(error);
      throw new AcmeError(`The authority at ${new URL(url).host} does not answer: ${reason}`, null, { cause: error });
    }
  }
}

const BAD_NONCE = "urn:ietf:params:acme:error:badNonce";
const ALREADY_REVOKED = "urn:ietf:params:acme:error:alreadyRevoked";

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > BODY_MAX) throw new Error("the answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Seconds, or a date. */
function retryAfterMs(value: string | string[] | undefined): number | null {
  if (typeof value !== "string") return null;
  const ms = /^\d+$/.test(value) ? Number(value) * SECOND_MS : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : null;
}

function read<T>(shape: z.ZodType<T>, { status, text }: Answer): T {
  const result = shape.safeParse(jsonOf(text));
  if (!result.success) throw new AcmeError(`The authority answered ${status} with something else than ACME.`);
  return result.data;
}

const problemOf = (text: string): z.output<typeof problemShape> => {
  const result = problemShape.safeParse(jsonOf(text));
  return result.success ? result.data : {};
};

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
