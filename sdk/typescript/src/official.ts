/** Official clients of OpenAI and Anthropic for a model of the platform, with a token that renews itself. */
import type { Berth } from "./berth.ts";

export interface OfficialOptions {
  baseURL: string;
  apiKey: string;
  fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
}

/** A class such as `OpenAI` of `openai`, or `Anthropic` of `@anthropic-ai/sdk`. */
export type OfficialClass<Client> = new (options: OfficialOptions) => Client;

/** Official clients want a key; the platform's own credentials take its place in every request. */
const PLACEHOLDER = "berth";
const KEY_HEADERS = ["authorization", "x-api-key"];

export const officialOptions = (berth: Berth, baseURL: string): OfficialOptions => ({
  baseURL,
  apiKey: PLACEHOLDER,
  fetch(input, init = {}) {
    const request = input instanceof Request ? input : null;
    const headers = new Headers(init.headers ?? request?.headers);
    for (const name of KEY_HEADERS) headers.delete(name);
    const url = request?.url ?? String(input);
    return berth.fetch(url, { ...(request ? { method: request.method, body: request.body } : {}), ...init, headers });
  },
});
