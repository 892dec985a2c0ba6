/**
 * A thin client of the Docker Engine API: requests, JSON answers checked by a schema, streams in both directions. Its
 * callers name paths of the API as the reference of that API writes them.
 */
import type { Readable } from "node:stream";
import { Agent, request } from "undici";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { ArchiveRefused } from "../../../../unpack/refusal.ts";
import { upTo } from "../../common/up-to.ts";
import type { DockerHost } from "./docker-host.ts";

/** Docker 20.10. Older engines read statistics slowly and know no private control group namespaces. */
const API_MIN = "1.41";
/** The newest version that this client was written for; a newer engine still speaks this one. */
const API_MAX = "1.47";
/** Ordinary calls answer in milliseconds; an engine under heavy load takes seconds. */
const CALL_WAIT_MS = 120_000;
const CONNECT_WAIT_MS = 10_000;
/** Longest answer that is read as text: a list of some ten thousand images has a tenth of it. */
const TEXT_BYTES_MAX = 128 * 1024 ** 2;
const REFUSAL_BYTES_MAX = 1024 ** 2;
/** The status that HTTP has for a content that is too large. */
const ANSWER_TOO_LONG = 413;

/** A refusal of the engine, with its HTTP status. */
export class DockerRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface DockerCall {
  /** A list is sent as one parameter for each of its words, an object as JSON. */
  query?: Record<string, string | number | boolean | readonly string[] | Record<string, string[]> | undefined>;
  /** A value that is sent as JSON, or a stream of a tar. */
  body?: unknown;
  tar?: Readable;
  signal?: AbortSignal | undefined;
  /** For calls that last as long as the thing that they wait for. */
  patient?: boolean;
}

type Method = "GET" | "POST" | "PUT" | "DELETE" | "HEAD";

const versionSchema = z.object({ ApiVersion: z.string(), Version: z.string(), Os: z.string(), Arch: z.string() });
export type DockerVersion = z.infer<typeof versionSchema>;

export class DockerClient {
  readonly host: DockerHost;
  readonly #agent: Agent;
  #prefix = "";

  constructor(host: DockerHost) {
    this.host = host;
    const socket = host.socketPath === undefined ? {} : { socketPath: host.socketPath };
    this.#agent = new Agent({
      connect: { ...socket, timeout: CONNECT_WAIT_MS },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 30_000,
    });
  }

  /** The engine's version; from then on calls name the API's version that both sides know. */
  async open(): Promise<DockerVersion> {
    const version = await this.json(versionSchema, "GET", "/version");
    if (isOlder(version.ApiVersion, API_MIN))
      throw new PlatformError(
        "unavailable",
        `Docker ${version.Version} at ${this.host.text} is too old: Berth needs 20.10 or newer.`,
      );
    this.#prefix = `/v${isOlder(version.ApiVersion, API_MAX) ? version.ApiVersion : API_MAX}`;
    return version;
  }

  async json<Schema extends z.ZodType>(
    schema: Schema,
    method: Method,
    path: string,
    call: DockerCall = {},
  ): Promise<z.output<Schema>> {
    return schema.parse(JSON.parse(await this.text(method, path, call)));
  }

  /** The whole answer as text. */
  async text(method: Method, path: string, call: DockerCall = {}): Promise<string> {
    return (await this.bytes(method, path, TEXT_BYTES_MAX, call)).toString("utf8");
  }

  /** The whole answer, which may have `bytesMax` bytes: names and files of strangers are in many of them. */
  bytes(method: Method, path: string, bytesMax: number, call: DockerCall = {}): Promise<Buffer> {
    return this.read(method, path, call, async (body) => {
      const whole = await upTo(body, bytesMax);
      if (whole !== null) return whole;
      throw new DockerRefusal(ANSWER_TOO_LONG, `an answer of Docker has more than ${bytesMax} bytes`);
    });
  }

  /** Answers what `use` makes of the answer's bytes; those that it leaves unread are not fetched. */
  async read<T>(
    method: Method,
    path: string,
    call: DockerCall,
    use: (body: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<T> {
    const { query = {}, body, tar, signal, patient = false } = call;
    const url = new URL(`${this.#prefix}${path}`, this.host.origin);
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined) continue;
      for (const each of Array.isArray(value) ? value : [value])
        url.searchParams.append(name, typeof each === "object" ? JSON.stringify(each) : String(each));
    }
    const limits = [...(signal ? [signal] : []), ...(patient ? [] : [AbortSignal.timeout(CALL_WAIT_MS)])];
    try {
      const answer = await request(url, {
        method,
        dispatcher: this.#agent,
        headers: tar
          ? { "content-type": "application/x-tar" }
          : body === undefined
            ? {}
            : { "content-type": "application/json" },
        body: tar ?? (body === undefined ? null : JSON.stringify(body)),
        ...(limits.length > 0 ? { signal: AbortSignal.any(limits) } : {}),
      });
      try {
        if (answer.statusCode < 400) return await use(answer.body);
        const said = await upTo(answer.body, REFUSAL_BYTES_MAX);
        throw new DockerRefusal(answer.statusCode, said === null ? "" : messageIn(said.toString("utf8")));
      } finally {
        answer.body.on("error", () => {}).destroy(); // the rest of the answer, where there is one
      }
    } catch (error) {
      if (error instanceof DockerRefusal || error instanceof ArchiveRefused) throw error;
      if (signal?.aborted) throw signal.reason;
      throw this.#silent(error);
    }
  }

  /** Null when the engine does not know the thing. */
  async find<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    call: DockerCall = {},
  ): Promise<z.output<Schema> | null> {
    try {
      return await this.json(schema, "GET", path, call);
    } catch (error) {
      if (error instanceof DockerRefusal && error.status === 404) return null;
      throw error;
    }
  }

  get isClosed(): boolean {
    return this.#agent.destroyed;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #silent(error: unknown): PlatformError {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    const message = `Docker does not answer at ${this.host.text}${code}. Is it running, and may this user reach it?`;
    return new PlatformError("unavailable", message, { cause: error });
  }
}

/** Runs a call and takes a refusal with one of these statuses for success. */
export async function tolerating(statuses: readonly number[], call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof DockerRefusal && statuses.includes(error.status))) throw error;
  }
}

const isOlder = (version: string, than: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [thanMajor = 0, thanMinor = 0] = than.split(".").map(Number);
  return major < thanMajor || (major === thanMajor && minor < thanMinor);
};

const refusalSchema = z.object({ message: z.string() });

function messageIn(text: string): string {
  try {
    return refusalSchema.parse(JSON.parse(text)).message;
  } catch {
    return text.slice(0, 500);
  }
}
