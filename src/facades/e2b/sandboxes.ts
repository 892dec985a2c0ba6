/** Sandboxes in the words of E2B's control API. */
import type { Control, Endpoint } from "./control.ts";
import { decoded, Refusal, unsupported } from "./refusal.ts";
import type { Place } from "./sandbox-id.ts";
import {
  endOf,
  isMadeHere,
  type NewSandbox,
  pausesAtEnd,
  type Shown,
  stateOf,
  toDocument,
  toWire,
  withEnd,
} from "./sandbox-wire.ts";
import { forked, madeOnce, snapshotIn } from "./snapshots.ts";

const LIMIT_DEFAULT = 100;
const FORKS_MAX = 20;
/** A hundred years. */
const TIMEOUT_MAX_S = 100 * 365 * 24 * 3600;

interface Found {
  shown: Shown;
  place: Place;
}

const sandboxOf = async (control: Control): Promise<Found> => {
  const place = await control.placeOf(control.params[0] ?? "");
  const { name: sandboxName, workspace } = place;
  return { place, shown: await control.manage<Shown>("sandboxGet", { params: { sandboxName }, workspace }) };
};

/** A sandbox with all that a client needs to reach it. */
const whole = async (control: Control, shown: Shown): Promise<object> => {
  const { name, workspace } = shown.metadata;
  const { id, token } = await control.reachOf({ name, workspace });
  return {
    ...toWire(shown, id),
    ...{ envdAccessToken: token, trafficAccessToken: token, domain: control.domain },
  };
};

export const create: Endpoint = async (control) => {
  const asked = control.body as NewSandbox;
  const timeout = timeoutIn(control);
  const source = snapshotIn(asked.templateID ?? "");
  if (source === null) {
    const sandboxName = control.nameFor(0);
    const body = toDocument({ ...asked, timeout }, sandboxName, control);
    const made = await madeOnce(
      () => control.manage<Shown>("sandboxCreate", { body }),
      () => control.manage<Shown>("sandboxGet", { params: { sandboxName } }),
    );
    return { status: 201, body: await whole(control, made) };
  }
  for (const name of FIXED_BY_SNAPSHOT) if (asked[name] !== undefined) throw unsupported(`\`${name}\` with a snapshot`);
  const { snapshot, sandbox } = source;
  const made = await forked(control, await control.placeOf(sandbox), { snapshot, timeout });
  return { status: 201, body: await whole(control, made) };
};

/** A sandbox from a snapshot has these from the sandbox that the snapshot is of. */
const FIXED_BY_SNAPSHOT = ["envVars", "metadata", "network", "volumeMounts", "autoPause"] as const;

/** The files are copied once for each; processes are not. */
export const fork: Endpoint = async (control) => {
  const place = await control.placeOf(control.params[0] ?? "");
  const count = Number(control.body.count ?? 1);
  if (!Number.isInteger(count) || count < 1 || count > FORKS_MAX)
    throw new Refusal(400, `count must be between 1 and ${FORKS_MAX}.`);
  const timeout = timeoutIn(control);
  const one = async (index: number): Promise<object> => {
    try {
      return { sandbox: await whole(control, await forked(control, place, { timeout, index })) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { error: { code: error.status, message: error.message } };
    }
  };
  const body: object[] = [];
  while (body.length < count) body.push(await one(body.length));
  return { status: 201, body };
};

/** A paused sandbox does not end; the next request to it wakes it. */
export const pause: Endpoint = async (control) => {
  if (control.body.memory === false) throw unsupported("A pause without the memory (`keepMemory: false`)");
  const { place, shown } = await sandboxOf(control);
  if (stateOf(shown) === "paused") throw new Refusal(409, "The sandbox is paused already.");
  const { name: sandboxName, workspace } = place;
  const params = { sandboxName };
  if (shown.spec.runtime?.expires !== undefined)
    await control.manage("sandboxUpdate", { params, body: withEnd(shown, null), workspace });
  await control.manage("sandboxPause", { params, workspace });
  return { status: 204 };
};

export const get: Endpoint = async (control) => ({
  status: 200,
  body: await whole(control, (await sandboxOf(control)).shown),
});

export const list: Endpoint = async (control) => {
  const { query, manage, idOf } = control;
  const wanted = [...new URLSearchParams(query.get("metadata") ?? "")].map(
    ([key, value]) => [decoded(key), decoded(value)] as const,
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

export const kill: Endpoint = async (control) => {
  const { name: sandboxName, workspace } = await control.placeOf(control.params[0] ?? "");
  await control.manage("sandboxDelete", { params: { sandboxName }, workspace });
  return { status: 204 };
};

const timeoutIn = ({ body }: Control): number | undefined => {
  const { timeout } = body;
  if (timeout === undefined || timeout === null) return undefined;
  if (typeof timeout !== "number" || !(timeout >= 0 && timeout <= TIMEOUT_MAX_S))
    throw new Refusal(400, `timeout must be a number of seconds between 0 and ${TIMEOUT_MAX_S}.`);
  return timeout;
};

async function endAt(control: Control, { place, shown }: Found, expires: string): Promise<Shown> {
  const { name: sandboxName, workspace } = place;
  return control.manage<Shown>("sandboxUpdate", { params: { sandboxName }, body: withEnd(shown, expires), workspace });
}

/** A sandbox that sleeps at its end gets no other end. */
export const setTimeout: Endpoint = async (control) => {
  const end = endOf(timeoutIn(control), control.nowMs);
  const found = await sandboxOf(control);
  if (!pausesAtEnd(found.shown)) await endAt(control, found, end);
  return { status: 204 };
};

/** As at E2B, a connection never brings the end nearer; a sandbox without an end that E2B's clients did not make gets none. */
async function extended(control: Control): Promise<Shown> {
  const end = endOf(timeoutIn(control), control.nowMs);
  const found = await sandboxOf(control);
  const { shown } = found;
  const before = shown.spec.runtime?.expires;
  const isKept =
    before === undefined ? pausesAtEnd(shown) || !isMadeHere(shown) : Date.parse(before) >= Date.parse(end);
  return isKept ? shown : endAt(control, found, end);
}

/** A sleeping sandbox wakes with the first request to it. */
export const connect: Endpoint = async (control) => ({
  status: 200,
  body: await whole(control, await extended(control)),
});
