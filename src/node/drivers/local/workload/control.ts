/** The driver's calls to the daemon inside a workload. */

import { PlatformError } from "../../../../contract/errors.ts";
import { request } from "../../../../lib/network/node-http.ts";
import type { Endpoint } from "../../../dial/endpoint.ts";
import { dialUnix } from "../../../dial/unix.ts";

/** The daemon answers in a millisecond; a hostile one may never answer. */
const ANSWER_WAIT_MS = 10_000;
/** Longest answer. The daemon's answers are small objects; a longer one comes from a hostile program. */
const ANSWER_BYTES_MAX = 64 * 1024;

export async function callControl(endpoint: Endpoint, path: string, body: unknown): Promise<unknown> {
  const signal = AbortSignal.timeout(ANSWER_WAIT_MS);
  const stream = await dialUnix(endpoint, "control", { signal });
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      stream.destroy();
      reject(new PlatformError("bad_gateway", "The workload's daemon did not answer.", { cause: error }));
    };
    const outgoing = request({
      createConnection: () => stream,
      method: body === undefined ? "GET" : "POST",
      path,
      signal,
      headers: { host: "sandbox", connection: "close", "content-type": "application/json" },
    });
    outgoing.once("error", fail);
    outgoing.once("response", (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES_MAX) fail(new Error("its answer is too long"));
      });
      response.once("error", fail);
      response.once("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode !== 200) return fail(new Error(`${response.statusCode} ${text}`));
        try {
          resolve(JSON.parse(text === "" ? "{}" : text));
        } catch (error) {
          fail(error);
        }
      });
    });
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
