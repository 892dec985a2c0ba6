/** The driver's calls to the daemon inside a workload. */

import type { IncomingHttpHeaders } from "node:http";
import { PlatformError } from "../../../contract/errors.ts";
import { request } from "../../../lib/network/node-http.ts";
import { dial } from "../../dial/dial.ts";
import type { Endpoint } from "../../dial/endpoint.ts";

/** The daemon answers in a millisecond; a hostile one may never answer. */
const ANSWER_WAIT_MS = 10_000;
/** Longest answer. The daemon's answers are small objects; a longer one comes from a hostile program. */
const ANSWER_BYTES_MAX = 64 * 1024;

export interface ControlAnswer {
  bytes: Buffer;
  headers: IncomingHttpHeaders;
}

/** A GET, or a POST of the body. */
export async function callControl(endpoint: Endpoint, path: string, body: unknown): Promise<unknown> {
  const { bytes } = await askControl(endpoint, path, body, ANSWER_BYTES_MAX);
  try {
    return JSON.parse(bytes.length === 0 ? "{}" : bytes.toString());
  } catch (error) {
    throw silent(error);
  }
}

/** The answer as it came, of at most `bytesMax` bytes. A body of bytes is sent as it is, any other as JSON. */
export async function askControl(
  endpoint: Endpoint,
  path: string,
  body: unknown,
  bytesMax: number,
  contentType = "application/json",
): Promise<ControlAnswer> {
  const signal = AbortSignal.timeout(ANSWER_WAIT_MS);
  const stream = await dial(endpoint, "control", { signal });
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      stream.destroy();
      reject(silent(error));
    };
    const outgoing = request({
      createConnection: () => stream,
      method: body === undefined ? "GET" : "POST",
      path,
      signal,
      headers: { host: "sandbox", connection: "close", "content-type": contentType },
    });
    outgoing.once("error", fail);
    outgoing.once("response", (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > bytesMax) fail(new Error("its answer is too long"));
      });
      response.once("error", fail);
      response.once("end", () => {
        const whole = Buffer.concat(chunks);
        if (response.statusCode === 200) resolve({ bytes: whole, headers: response.headers });
        else fail(new Error(`${response.statusCode} ${whole.toString()}`));
      });
    });
    outgoing.end(body === undefined || body instanceof Buffer ? body : JSON.stringify(body));
  });
}

const silent = (cause: unknown): PlatformError =>
  new PlatformError("bad_gateway", "The workload's daemon did not answer.", { cause });
