/** One request to the API, with the token of the session and the workspace of the page. */
import { failureOf, unreachable } from "./failure.ts";
import { forgetToken, token } from "./session.ts";

/** The behaviour that this program was written for. */
const VERSION = "2026-04-28";

export interface Call {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Below `/v0`. */
  path: string;
  query?: Readonly<Record<string, string>>;
  body?: unknown;
  workspace?: string;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

export async function call<T>(given: Call): Promise<T> {
  const response = await send(given);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** The response itself, for streams and headers; it is a success. */
export async function send(given: Call): Promise<Response> {
  let response = await attempt(given);
  if (response.status === 401) {
    // The session may have ended early, or the server has another key: one new token decides.
    forgetToken();
    response = await attempt(given);
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

export const urlOf = ({ path, query = {} }: Pick<Call, "path" | "query">): string => {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `/v0${path}${words === "" ? "" : `?${words}`}`;
};

async function attempt(given: Call): Promise<Response> {
  const { method = "GET", body, workspace, signal, headers } = given;
  const bearer = await token();
  return fetch(urlOf(given), {
    method,
    credentials: "omit",
    headers: {
      authorization: `Bearer ${bearer}`,
      "service-version": VERSION,
      ...(workspace === undefined ? {} : { "x-service-workspace": workspace }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw unreachable();
  });
}
