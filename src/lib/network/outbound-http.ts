/**
 * HTTP to addresses that tenants name. The address is judged after its name was resolved, on the very address that is
 * dialled; redirects are not followed, because they would carry credentials elsewhere; answers are read up to a limit.
 */
import { createRequire } from "node:module";
import type { Agent } from "undici";
import { addressGuard } from "./guarded-lookup.ts";

export interface OutboundRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  /** Longest answer that is read, in bytes. */
  bytesMax: number;
  /** A longer answer is a failure, or is cut off there. Default "fail". */
  longAnswer?: "fail" | "cut";
}

export interface OutboundAnswer {
  status: number;
  contentType: string;
  text: string;
}

export interface Outbound {
  request(url: string, request: OutboundRequest): Promise<OutboundAnswer>;
  stop(): Promise<void>;
}

/** Its message can be told to whoever named the address. */
export class OutboundError extends Error {}

/** The address may not be dialled, now or later. */
export class AddressRefused extends OutboundError {}

const CONNECT_TIMEOUT_MS = 10_000;

const require = createRequire(import.meta.url);
/** Loaded with the first call: a server without connections need not carry it (7 MB). */
const undici = (): typeof import("undici") => require("undici") as typeof import("undici");

export interface OutboundOptions {
  privateAddresses: boolean;
  /** Keep connections for the next request. Default true. */
  keepAlive?: boolean;
}

export function createOutbound({ privateAddresses, keepAlive = true }: OutboundOptions): Outbound {
  let agent: Agent | null = null;
  const guard = addressGuard({ privateAddresses, refused });
  return {
    async request(address, { method, headers, body, signal, bytesMax, longAnswer = "fail" }) {
      const url = parse(address);
      guard.check(url.hostname);
      const { Agent: UndiciAgent, request } = undici();
      agent ??= new UndiciAgent({
        connect: { timeout: CONNECT_TIMEOUT_MS, lookup: guard.lookup },
        ...(keepAlive ? {} : { pipelining: 0 }),
      });
      try {
        const answer = await request(url, { method, headers, body: body ?? null, signal, dispatcher: agent });
        const type = answer.headers["content-type"];
        const text = await readText(answer.body, bytesMax, longAnswer);
        return { status: answer.statusCode, contentType: Array.isArray(type) ? (type[0] ?? "") : (type ?? ""), text };
      } catch (error) {
        throw asOutboundError(error, url, signal);
      }
    },
    async stop() {
      await agent?.destroy();
    },
  };
}

function parse(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url && (url.protocol === "https:" || url.protocol === "http:") && url.username === "") return url;
  throw new OutboundError("It is not an http or https address without credentials.");
}

async function readText(body: AsyncIterable<Buffer>, bytesMax: number, longAnswer: "fail" | "cut"): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax && longAnswer === "cut") break;
    if (bytes > bytesMax) throw new OutboundError(`The answer is longer than ${bytesMax} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function asOutboundError(error: unknown, { host }: URL, signal: AbortSignal): OutboundError {
  if (error instanceof OutboundError) return error;
  if (error instanceof Error && error.cause instanceof OutboundError) return error.cause;
  if (signal.aborted) return new OutboundError(`${host} did not answer in time.`, { cause: error });
  const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return new OutboundError(`${host} could not be reached${code}.`, { cause: error });
}

const refused = (host: string): AddressRefused =>
  new AddressRefused(
    `${host} is not an address this platform may connect to; an administrator can allow private ones.`,
  );
