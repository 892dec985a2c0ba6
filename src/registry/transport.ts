/**
 * HTTP to registries. Tenants name registries, registries name token servers and the places of blobs: every one of
 * these addresses is judged after its name was resolved, on the very address that is dialled. Redirects are answers
 * here; whoever follows one sends a new request.
 */
import { createRequire } from "node:module";
import type { Readable } from "node:stream";
import { rootCertificates } from "node:tls";
import type { Agent, Dispatcher } from "undici";
import { REGISTRY_AGENT } from "../contract/image-base.ts";
import { addressGuard } from "../lib/network/guarded-lookup.ts";
import { OutboundError } from "../lib/network/outbound-http.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import { broken, RegistryProblem } from "./problem.ts";

export interface Sent {
  method: "GET" | "HEAD" | "POST";
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

export interface Received {
  status: number;
  /** Names in lower case; the values of a repeated header are joined with a comma. */
  headers: Record<string, string>;
  body: Readable;
}

export interface Transport {
  send(url: URL, request: Sent): Promise<Received>;
  stop(): Promise<void>;
}

export interface TransportOptions {
  privateAddresses: boolean;
  /** Certificates (PEM) to trust beside those of the system. */
  ca?: string;
}

const CONNECT_TIMEOUT_MS = 10 * SECOND_MS;
/** Longest time until the headers of an answer, and between two chunks of its body. */
const SILENCE_MAX_MS = 60 * SECOND_MS;

const require = createRequire(import.meta.url);
/** Loaded with the first pull: a server without pulls need not carry it. */
const undici = (): typeof import("undici") => require("undici") as typeof import("undici");

export function createTransport({ privateAddresses, ca }: TransportOptions): Transport {
  const guard = addressGuard({ privateAddresses, refused: addressRefused });
  let agent: Agent | null = null;
  return {
    async send(url, { method, headers, body, signal }) {
      const { Agent: UndiciAgent, request } = undici();
      agent ??= new UndiciAgent({
        connect: {
          timeout: CONNECT_TIMEOUT_MS,
          lookup: guard.lookup,
          ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
        },
        headersTimeout: SILENCE_MAX_MS,
        bodyTimeout: SILENCE_MAX_MS,
      });
      try {
        guard.check(url.hostname);
        const answer = await request(url, {
          ...{ method, body: body ?? null, signal, dispatcher: agent },
          headers: { "user-agent": REGISTRY_AGENT, ...headers },
        });
        // A body that is abandoned fails with an error that nobody else hears.
        answer.body.on("error", () => {});
        return { status: answer.statusCode, headers: plainHeaders(answer.headers), body: answer.body };
      } catch (error) {
        throw asProblem(error, url, signal);
      }
    },
    async stop() {
      await agent?.destroy();
    },
  };
}

const plainHeaders = (headers: Dispatcher.ResponseData["headers"]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );

/** Reads a short body; a longer one ends the connection. */
export async function readBytes({ body }: Received, bytesMax: number, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw new RegistryProblem("too_large", `${what} is longer than ${bytesMax} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof RegistryProblem) throw error;
    throw new RegistryProblem("unreachable", `${what} was cut off`, { cause: error });
  } finally {
    body.destroy();
  }
  return Buffer.concat(chunks);
}

/** Reads a short body that is JSON. */
export async function readJson(received: Received, bytesMax: number, what: string): Promise<unknown> {
  const bytes = await readBytes(received, bytesMax, what);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw broken(`${what} is not JSON`, error);
  }
}

export const discard = ({ body }: Received): void => void body.destroy();

function asProblem(error: unknown, { host }: URL, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  for (const each of [error, error instanceof Error ? error.cause : undefined])
    if (each instanceof AddressRefused) return new RegistryProblem("refused", each.message, { cause: each });
  const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return new RegistryProblem("unreachable", `${host} could not be reached${code}`, { cause: error });
}

class AddressRefused extends OutboundError {}

const addressRefused = (host: string): AddressRefused =>
  new AddressRefused(`${host} is not an address this platform may connect to; an administrator can allow private ones`);
