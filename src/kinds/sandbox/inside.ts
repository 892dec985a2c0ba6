/**
 * Small requests of the platform to the daemon inside a sandbox. The daemon is not trusted, so time and size are
 * limited.
 */

import { request } from "../../lib/network/node-http.ts";
import { dial } from "../../node/dial/dial.ts";
import type { DialTarget, Endpoint } from "../../node/dial/endpoint.ts";

export interface Question {
  door: DialTarget & string;
  method?: string;
  path: string;
  body?: unknown;
  answerMs: number;
}

export interface Reply {
  status: number;
  text: string;
}

/** Bytes of an answer; a longer answer counts as invalid. */
const ANSWER_BYTES_MAX = 256 * 1024;

export async function askInside(endpoint: Endpoint, question: Question): Promise<Reply> {
  const { door, method = "GET", path, body, answerMs } = question;
  const signal = AbortSignal.timeout(answerMs);
  const socket = await dial(endpoint, door, { signal });
  const sent = body === undefined ? "" : JSON.stringify(body);
  const headers =
    body === undefined ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(sent)) };
  return new Promise((resolve, reject) => {
    const asking = request({ method, path, headers, createConnection: () => socket as never, signal }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > ANSWER_BYTES_MAX) response.destroy(new Error("The answer is too long."));
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    asking.on("error", reject);
    asking.end(sent);
  });
}
