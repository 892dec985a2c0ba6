/**
 * `fetch` on Node's own HTTP client, for calls whose body is text. The first use of the built-in `fetch` loads its whole
 * implementation, about 80 ms of CPU time: a fifth of a short command. Other bodies go to the built-in one.
 */
import type { IncomingMessage, RequestOptions } from "node:http";
import type { Fetch, FetchAnswer } from "../client/client.ts";

export const httpFetch: Fetch = async (target, init) => {
  const { method = "GET", headers, body, signal } = init;
  if (body !== undefined && typeof body !== "string") return fetch(target, init);
  const url = new URL(target);
  // Not imported: see lib/network/node-http.ts.
  const { request } = process.getBuiltinModule(url.protocol === "https:" ? "node:https" : "node:http");
  const options: RequestOptions = {
    method,
    headers: { ...(headers as Record<string, string>) },
    ...(signal ? { signal } : {}),
  };
  return new Promise<FetchAnswer>((resolve, reject) => {
    request(url, options, (response) => resolve(answerOf(response)))
      .on("error", (error) => reject(new TypeError("fetch failed", { cause: error })))
      .end(body);
  });
};

const answerOf = (response: IncomingMessage): FetchAnswer => ({
  status: response.statusCode ?? 0,
  headers: { get: (name) => headerText(response.headers[name.toLowerCase()]) },
  body: response,
});

const headerText = (value: string | string[] | undefined): string | null =>
  value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
