/** E2B's control API: each endpoint is a translation to operations of the management API. */
import { randomWord } from "../../lib/ids.ts";
import type { Management } from "./management.ts";
import { Refusal } from "./refusal.ts";
import type { Place } from "./sandbox-id.ts";
import {
  ENVD_VERSION,
  endOf,
  type NewSandbox,
  pausesAtEnd,
  type Shown,
  stateOf,
  toDocument,
  toWire,
  withEnd,
} from "./sandbox-wire.ts";

export interface Control {
  manage: Management;
  /** Parsed JSON; an absent body is an empty object. */
  body: Record<string, unknown>;
  query: URLSearchParams;
  nowMs: number;
  /** The client's words for the parameters of the path. */
  params: string[];
  /** Refuses with 404 what the caller cannot see. */
  placeOf(sandboxID: string): Promise<Place>;
  idOf(place: Place): Promise<string>;
  /** The token that opens the sandbox's own API. */
  accessToken: string;
  /** Domain below which ports of sandboxes have host names; null when there is none. */
  domain: string | null;
}

export interface Answered {
  status: number;
  body?: unknown;
  headers?: string[];
}

export type Endpoint = (control: Control) => Promise<Answered>;

const NAME_CHARS = 20;
const LIMIT_DEFAULT = 100;

const sandboxOf = async (control: Control): Promise<{ shown: Shown; place: Place }> => {
  const place = await control.placeOf(control.params[0] ?? "");
  const { name: sandboxName, workspace } = place;
  return { place, shown: await control.manage<Shown>("sandboxGet", { params: { sandboxName }, workspace }) };
};

/** What a client needs to reach a sandbox. */
const reachable = ({ accessToken, domain }: Control): object => ({
  envdVersion: ENVD_VERSION,
  envdAccessToken: accessToken,
  ...(domain === null ? {} : { domain }),
});

const whole = async (control: Control, shown: Shown): Promise<object> => {
  const { name, workspace } = shown.metadata;
  return { ...toWire(shown, await control.idOf({ name, workspace })), ...reachable(control) };
};

const create: Endpoint = async (control) => {
  const name = `e${randomWord(NAME_CHARS)}`;
  const body = toDocument(control.body as NewSandbox, name, control.nowMs);
  return { status: 201, body: await whole(control, await control.manage<Shown>("sandboxCreate", { body })) };
};

const get: Endpoint = async (control) => ({
  status: 200,
  body: await whole(control, (await sandboxOf(control)).shown),
});

const list: Endpoint = async (control) => {
  const { query, manage, idOf } = control;
  const wanted = [...new URLSearchParams(query.get("metadata") ?? "")].map(
    ([key, value]) => [decodeURIComponent(key), decodeURIComponent(value)] as const,
  );
  const states = (query.get("state") ?? "running,paused").split(",");
  const cursor = query.get("nextToken") ?? "";
  const page = await manage<{ data: Shown[]; meta: { nextCursor?: string | null } }>("sandboxList", {
    query: {
      limit: query.get("limit") ?? String(LIMIT_DEFAULT),
      status: "DEPLOYED,DEPLOYING",
      ...(cursor === "" ? {} : { cursor }),
    },
  });
  const found = page.data.filter(
    (shown) =>
      states.includes(stateOf(shown)) && wanted.every(([key, value]) => shown.metadata.labels?.[key] === value),
  );
  const body = await Promise.all(
    found.map(async (shown) => {
      const { name, workspace } = shown.metadata;
      return toWire(shown, await idOf({ name, workspace }));
    }),
  );
  const { nextCursor } = page.meta;
  return { status: 200, body, headers: nextCursor ? ["X-Next-Token", nextCursor] : [] };
};

const kill: Endpoint = async (control) => {
  const { name: sandboxName, workspace } = await control.placeOf(control.params[0] ?? "");
  await control.manage("sandboxDelete", { params: { sandboxName }, workspace });
  return { status: 204 };
};

const timeoutIn = ({ body }: Control): number | undefined => {
  const { timeout } = body;
  if (timeout === undefined || timeout === null) return undefined;
  if (typeof timeout !== "number" || !(timeout >= 0)) throw new Refusal(400, "timeout must be a number of seconds.");
  return timeout;
};

/** Gives the sandbox a new end, unless it sleeps at its end. */
async function extend(control: Control): Promise<Shown> {
  const timeout = timeoutIn(control);
  const { place, shown } = await sandboxOf(control);
  if (pausesAtEnd(shown)) return shown;
  const { name: sandboxName, workspace } = place;
  const body = withEnd(shown, endOf(timeout, control.nowMs));
  return control.manage<Shown>("sandboxUpdate", { params: { sandboxName }, body, workspace });
}

const setTimeout: Endpoint = async (control) => {
  await extend(control);
  return { status: 204 };
};

/** A sleeping sandbox wakes with the first request to it. */
const connect: Endpoint = async (control) => ({ status: 200, body: await whole(control, await extend(control)) });

export interface Route {
  method: string;
  pattern: RegExp;
  serve: Endpoint;
}

const ID = "([^/]+)";
const at = (method: string, path: string, serve: Endpoint): Route => ({
  method,
  pattern: new RegExp(`^(?:/v[23])?${path.replaceAll("{}", ID)}/?$`),
  serve,
});

export const CONTROL_ROUTES: readonly Route[] = [
  at("POST", "/sandboxes", create),
  at("GET", "/sandboxes", list),
  at("GET", "/sandboxes/{}", get),
  at("DELETE", "/sandboxes/{}", kill),
  at("POST", "/sandboxes/{}/timeout", setTimeout),
  at("POST", "/sandboxes/{}/connect", connect),
  at("POST", "/sandboxes/{}/resume", connect),
];
