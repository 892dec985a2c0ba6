/**
 * One server, one caller, one workspace. Most programs need none: `Sandbox.create()` and the like use the one that
 * variables, the workload's identity or the command line's file lead to.
 *
 *   const berth = new Berth({ url: "https://berth.example.com", apiKey });
 *   const box = await Sandbox.create({ berth });
 */
import { segment, urlBelow } from "./core/address.ts";
import { createApi, type Reach, readJson } from "./core/api.ts";
import type { CallOptions } from "./core/call.ts";
import { BerthError } from "./core/errors.ts";
import { createTransport, RETRIES, TIMEOUT_MS, type WireBody, type WireRequest } from "./core/transport.ts";
import { type Connection, type ConnectionOptions, resolveConnection } from "./credentials/connection.ts";
import type { Api } from "./generated/api.ts";

export interface BerthOptions extends ConnectionOptions {
  /** How often a request is sent again when that does no harm. Default 2. */
  retries?: number | undefined;
  /** Milliseconds until one attempt is given up. Default 120,000. */
  timeoutMs?: number | undefined;
  /** Default: the global one. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** For everything that can be used with another server than the default. */
export interface WithBerth {
  berth?: Berth | undefined;
}

/** Kinds of workloads that have an address below the workspace. */
export type WorkloadKind = "sandboxes" | "models" | "agents" | "functions" | "applications" | "jobs";

/** A request to a workload, below its address. */
export interface WorkloadRequest extends CallOptions {
  method?: string;
  /** With the leading slash. */
  path: string;
  headers?: Record<string, string>;
  /** JSON, unless `headers` have a content type. */
  body?: unknown;
  repeatable?: boolean;
}

export class Berth {
  /** Every operation of the management API. */
  readonly api: Api;
  readonly #options: BerthOptions;
  readonly #fetch: typeof globalThis.fetch;
  #connection: Promise<Connection> | null = null;
  #workspace: Promise<string> | null = null;

  constructor(options: BerthOptions = {}) {
    this.#options = options;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.api = createApi(() => this.#reach());
  }

  /** The server and the workspace in use. */
  async connection(): Promise<{ url: string; workspace: string | undefined }> {
    const { url, workspace } = await this.#connect();
    return { url, workspace };
  }

  /** A valid key or token, for other clients: renewed when it is near its end. */
  async token(): Promise<string> {
    return (await (await this.#connect()).credential.bearer()) ?? "";
  }

  /** The name of the workspace: the chosen one, or the only one that the credentials reach. */
  async workspace(): Promise<string> {
    const { workspace } = await this.#connect();
    if (workspace) return workspace;
    this.#workspace ??= this.#onlyWorkspace().catch((error: unknown) => {
      this.#workspace = null;
      throw error;
    });
    return this.#workspace;
  }

  /** The address of a workload, which needs the caller's credentials. */
  async address(kind: WorkloadKind, name: string): Promise<string> {
    const [{ url }, workspace] = await Promise.all([this.#connect(), this.workspace()]);
    return `${url}/${segment("workspace", workspace)}/${kind}/${segment("name", name)}`;
  }

  /**
   * Sends a request below the server's address with the caller's credentials, as `fetch` does: whatever the status. A
   * token that the server refuses is renewed, once.
   */
  async fetch(url: string, init: RequestInit = {}): Promise<Response> {
    const { url: server, credential } = await this.#connect();
    if (!url.startsWith(`${server}/`))
      throw new BerthError({ code: "invalid_url", message: `${url} is not below ${server}.` });
    urlBelow(server, url.slice(server.length));
    const send = (bearer: string | null): Promise<Response> => {
      const headers = new Headers(init.headers);
      headers.set("x-service-authorization", `Bearer ${bearer}`);
      return this.#fetch(url, { ...init, headers, redirect: "manual" });
    };
    const bearer = await credential.bearer();
    const response = await send(bearer);
    if (response.status !== 401 || init.body instanceof ReadableStream) return response;
    const next = await credential.bearer(bearer);
    if (next === bearer) return response;
    await response.body?.cancel();
    return send(next);
  }

  /** Sends a request to a workload and reads its JSON. Throws BerthError for anything but success. */
  async askWorkload(address: string, request: WorkloadRequest): Promise<unknown> {
    return this.sendToWorkload(address, request, readJson);
  }

  /** Like `askWorkload`, with a reader of the answer. */
  async sendToWorkload<Result>(
    address: string,
    request: WorkloadRequest,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const { send } = await this.#reach();
    return send(wireOf(address, request), read);
  }

  async #reach(): Promise<Reach> {
    const { url, workspace, credential } = await this.#connect();
    const { retries = RETRIES, timeoutMs = TIMEOUT_MS } = this.#options;
    return { url, workspace, send: createTransport({ credential, fetch: this.#fetch, retries, timeoutMs }) };
  }

  #connect(): Promise<Connection> {
    this.#connection ??= resolveConnection(this.#options, this.#fetch).catch((error: unknown) => {
      this.#connection = null;
      throw error;
    });
    return this.#connection;
  }

  async #onlyWorkspace(): Promise<string> {
    const [first, ...others] = await this.api.workspaceList();
    if (first?.name && others.length === 0) return first.name;
    throw new BerthError({
      code: "no_workspace",
      message: first ? "These credentials reach several workspaces." : "These credentials reach no workspace.",
    });
  }
}

function wireOf(address: string, request: WorkloadRequest): WireRequest {
  const { method = "GET", path, headers = {}, body, repeatable = method === "GET", signal, timeoutMs } = request;
  const isJson = body !== undefined && headers["content-type"] === undefined;
  return {
    method,
    address,
    path,
    headers: { ...(isJson ? { "content-type": "application/json" } : {}), ...headers },
    body: isJson ? JSON.stringify(body) : (body as WireBody | undefined),
    repeatable,
    signal,
    timeoutMs,
  };
}

let usual: Berth | null = null;

/** The server that everything uses when no other is named. */
export function defaultBerth(): Berth {
  usual ??= new Berth();
  return usual;
}

/** Replaces the default, for programs that configure it once. */
export function setDefaultBerth(berth: Berth): void {
  usual = berth;
}
