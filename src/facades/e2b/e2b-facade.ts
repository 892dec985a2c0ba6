/**
 * E2B's API: sandboxes, and the calls to the daemon inside them. A request that names a sandbox in `E2b-Sandbox-Id` goes
 * to that sandbox, by the path of any other request to it; every other request belongs to the control API.
 */

import type { DirectCall } from "../../contract/direct-call.ts";
import { asGatewayError } from "../../contract/gateway-errors.ts";
import type { Facade, GatewayDeps, Passage, Principal, Workload } from "../../gateway/deps.ts";
import { readBody } from "../../gateway/request-body.ts";
import type { Downstream } from "../../http/downstream.ts";
import { DressedRequest } from "../../http/dressed-request.ts";
import { requestIdOf } from "../../http/request-id.ts";
import { STATUS_CODES } from "../../lib/network/node-http.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { type AccessTokenDeps, type AccessTokens, createAccessTokens } from "./access-token.ts";
import type { Answered, Control, SendArchive } from "./control.ts";
import { CONTROL_ROUTES } from "./control-routes.ts";
import { managementOf } from "./management.ts";
import { decoded, Refusal } from "./refusal.ts";
import { idOf, idOfFound, type Place, sandboxBehind } from "./sandbox-id.ts";
import { KEY_LABEL, newName } from "./sandbox-wire.ts";
import { signedFile } from "./signed-file.ts";
import { type StepFileDeps, StepFiles } from "./templates/step-files.ts";

export interface E2bFacadeDeps
  extends AccessTokenDeps,
    StepFileDeps,
    Pick<GatewayDeps, "authenticate" | "authorize" | "resolve"> {
  call: DirectCall;
  send: SendArchive;
  clock: Clock;
  brand: string;
  /** Domain, with a port where needed, below which ports of sandboxes have host names. */
  hostsBelow(): string;
  workspacesOf(principal: Principal, limit: number): Promise<string[]>;
  /** Labels of a sandbox; none when it does not exist. */
  labelsOf(place: Place): Promise<Readonly<Record<string, string>>>;
}

const ID_FIELD = "e2b-sandbox-id";
const PORT_FIELD = "e2b-sandbox-port";
const TOKEN_FIELD = "x-access-token";
const TRAFFIC_FIELD = "e2b-traffic-access-token";
const KEY_FIELD = "x-api-key";
const IDEMPOTENCY_FIELD = "idempotency-key";
/** Fields for this façade alone; what runs in a sandbox does not get them. */
const OWN_FIELDS = new Set([ID_FIELD, PORT_FIELD, TOKEN_FIELD, TRAFFIC_FIELD, KEY_FIELD]);
/** The same where the token that opens the sandbox came in Authorization. */
const OWN_FIELDS_AND_BEARER = new Set([...OWN_FIELDS, "authorization"]);
const NOTHING: ReadonlyMap<string, string> = new Map();
/** The port of E2B's daemon, whose API the platform's own daemon has below this path. */
const DAEMON_PORT = 49983;
const PORT_MAX = 65_535;
const DAEMON_PATH = "/e2b";
const BODY_BYTES_MAX = 1024 * 1024;
const WORKSPACES_MAX = 1000;
/** Where a request without credentials to a sandbox that does not exist goes: the gateway refuses it like any other. */
const NOWHERE = { to: "workload", kind: "sandbox", workspace: "-", name: "-" } as const;

export function createE2bFacade(deps: E2bFacadeDeps): Facade {
  const parts = { ...deps, tokens: createAccessTokens(deps), stepFiles: new StepFiles(deps) };
  return async (down, { path, prefix, port }) => {
    const named = port ?? namedIn(down) ?? metricsOf(down, path);
    try {
      if (named !== null) return await passage(parts, down, { path, prefix, ...named });
      const isFile = await parts.stepFiles.take(down, path, deps.clock.now());
      const made = isFile ? NOTHING_TO_SAY : await control(parts, down, { path, prefix });
      if ("node" in made) return made;
      answer(down, made);
    } catch (error) {
      const { status, message } = error instanceof Refusal ? error : asGatewayError(error);
      if (status >= 500 && !(error instanceof Refusal)) throw error;
      answer(down, { status, body: { code: status, message } });
    }
    return null;
  };
}

interface Deps extends E2bFacadeDeps {
  tokens: AccessTokens;
  stepFiles: StepFiles;
}

const NO_CONTENT = 204;
const NOTHING_TO_SAY: Answered = { status: 200 };

/** The sandbox and its port that the client names in header fields; null for requests to the control API. */
function namedIn(down: Downstream): { sandbox: string; number: number } | null {
  const sandbox = down.header(ID_FIELD);
  return sandbox === undefined ? null : { sandbox, number: Number(down.header(PORT_FIELD) ?? DAEMON_PORT) };
}

const METRICS = /^(?:\/v[23])?\/sandboxes\/([^/?]+)\/metrics\/?(?:\?|$)/;

/** The one endpoint of the control API that the daemon inside answers: what the sandbox uses now. */
function metricsOf(
  { method }: Downstream,
  path: string,
): Pick<Inside, "sandbox" | "number" | "path" | "missing"> | null {
  const sandbox = method === "GET" ? METRICS.exec(path)?.[1] : undefined;
  return sandbox === undefined ? null : { sandbox, number: DAEMON_PORT, path: "/metrics", missing: 404 };
}

interface Inside {
  sandbox: string;
  number: number;
  path: string;
  prefix: string;
  /** Status for a sandbox that does not exist. E2B's clients take 502 for "it does not run". */
  missing?: 404;
}

/** The request as one to the sandbox's own address. */
async function passage(deps: Deps, down: Downstream, inside: Inside): Promise<Passage> {
  const { sandbox: id, number, path, prefix, missing = 502 } = inside;
  if (!(Number.isInteger(number) && number > 0 && number <= PORT_MAX)) throw new Refusal(400, "There is no such port.");
  const sandbox = await sandboxBehind(deps.resolve, id);
  const token = tokenIn(down, [TOKEN_FIELD, TRAFFIC_FIELD, KEY_FIELD]);
  // Whoever is known is told which sandboxes are there, of those that they may see; a stranger is told nothing.
  const known = token === null ? null : await deps.tokens.ownerOf(token);
  if (known !== null && !(sandbox !== null && (await isSeen(deps, known, sandbox.workspace))))
    throw new Refusal(missing, `The sandbox ${id} was not found.`);
  const principal =
    token === null ? await signer(deps, down, inside, sandbox) : await deps.tokens.check(token, sandbox?.uid ?? "");
  if (token !== null && principal === null) throw new Refusal(401, "The token is not valid for this sandbox.");
  if (sandbox === null) return { caller: null, down, route: { ...NOWHERE, prefix, path } };
  if (sandbox.elsewhere !== null) return { node: sandbox.elsewhere };
  // An address that somebody signed ends at its time for those who come later, not for a transfer that has begun.
  const again = async (): Promise<Principal | null> =>
    token === null ? deps.principalOfKey(principal?.keyId ?? "") : deps.tokens.check(token, sandbox.uid);
  const isBearer = token !== null && token === bearerIn(down);
  const { workspace, name } = sandbox;
  const place = { to: "workload", kind: "sandbox", workspace, name, prefix } as const;
  return {
    caller: principal && { principal, again },
    down: new DressedRequest(down, NOTHING, isBearer ? OWN_FIELDS_AND_BEARER : OWN_FIELDS),
    route:
      number === DAEMON_PORT
        ? { ...place, path: `${DAEMON_PATH}${path}` }
        : { ...place, path: path.startsWith("/") ? path : `/${path}`, port: number },
  };
}

/** Who signed the address of a file; null when nobody did. */
async function signer(
  deps: Deps,
  down: Downstream,
  inside: Inside,
  sandbox: Workload | null,
): Promise<Principal | null> {
  if (sandbox === null || sandbox.elsewhere !== null || inside.number !== DAEMON_PORT) return null;
  const file = signedFile(down.method, inside.path, deps.clock.now());
  const keyId = file && (await deps.labelsOf(sandbox))[KEY_LABEL];
  return file && keyId ? deps.tokens.signerOf(file, sandbox.uid, keyId) : null;
}

async function control(
  deps: Deps,
  down: Downstream,
  { path: target, prefix }: { path: string; prefix: string },
): Promise<Answered | { node: string }> {
  const { token, principal } = await callerOf(deps, down);
  const { pathname, searchParams: query } = addressOf(target);
  const fitting = CONTROL_ROUTES.filter(({ pattern }) => pattern.test(pathname));
  const route = fitting.find(({ method }) => method === down.method);
  if (!route)
    throw fitting.length > 0
      ? new Refusal(405, `${down.method} is not possible at ${pathname}.`)
      : new Refusal(404, `E2B's ${down.method} ${pathname} is not supported by this platform.`);
  const params = (route.pattern.exec(pathname) ?? []).slice(1).map(decoded);
  const { elsewhere = null } = (route.placed && (await sandboxBehind(deps.resolve, params[0] ?? ""))) || {};
  if (elsewhere !== null) return { node: elsewhere };
  const requestId = requestIdOf(down);
  const keyed = down.header(IDEMPOTENCY_FIELD);
  const manage = managementOf(deps.call, down, { token, brand: deps.brand, requestId });
  const made: Control = {
    manage,
    query,
    body: bodyOf(await readBody(down, BODY_BYTES_MAX)),
    nowMs: deps.clock.now(),
    keyId: principal.keyId ?? null,
    params,
    placeOf: async (sandboxID) => {
      const sandbox = await sandboxBehind(deps.resolve, sandboxID);
      if (sandbox === null || !(await isSeen(deps, principal, sandbox.workspace)))
        throw new Refusal(404, `The sandbox ${sandboxID} was not found.`);
      return sandbox;
    },
    idOf: (place) => idOf(deps.resolve, place),
    reachOf: async (place) => {
      const found = await deps.resolve({ by: "name", kind: "sandbox", ...place });
      return { id: idOfFound(found, place), token: deps.tokens.issue(principal, token, found?.uid ?? "") };
    },
    owner: JSON.stringify([principal.id, principal.keyId ?? ""]),
    stepFiles: deps.stepFiles,
    send: deps.send,
    address: `${down.secure ? "https" : "http"}://${down.host ?? ""}${prefix}`,
    nameFor: (index) => newName(keyed && [principal.id, pathname, keyed, index]),
    domain: deps.hostsBelow(),
  };
  return route.serve(made);
}

function addressOf(target: string): URL {
  const address = URL.parse(`http://e2b${target.startsWith("/") ? "" : "/"}${target}`);
  if (address === null) throw new Refusal(400, "The address is not a valid one.");
  return address;
}

/** Somebody else's sandbox looks like one that does not exist. */
async function isSeen(deps: E2bFacadeDeps, principal: Principal, workspace: string): Promise<boolean> {
  if (await deps.authorize(principal, { workspace, kind: "sandbox" })) return true;
  return (await deps.workspacesOf(principal, WORKSPACES_MAX)).includes(workspace);
}

async function callerOf(deps: E2bFacadeDeps, down: Downstream): Promise<{ token: string; principal: Principal }> {
  const token = tokenIn(down, [KEY_FIELD]);
  if (token === null) throw new Refusal(401, "An API key is required: send it in X-API-KEY (E2B_API_KEY).");
  const principal = await deps.authenticate(token);
  if (!principal) throw new Refusal(401, "The API key is not valid, or no longer valid.");
  return { token, principal };
}

function tokenIn(down: Downstream, fields: readonly string[]): string | null {
  return fields.map((name) => down.header(name)).find(Boolean) ?? bearerIn(down);
}

const bearerIn = (down: Downstream): string | null =>
  /^bearer +(\S+)$/i.exec(down.header("authorization") ?? "")?.[1] ?? null;

function bodyOf(sent: Buffer): Record<string, unknown> {
  if (sent.length === 0) return {};
  try {
    const parsed: unknown = JSON.parse(sent.toString("utf8"));
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return { ...parsed };
  } catch {
    // refused below
  }
  throw new Refusal(400, "The body is not a JSON object.");
}

function answer(down: Downstream, { status, body, headers = [] }: Answered): void {
  const text = body === undefined ? null : Buffer.from(JSON.stringify(body));
  const type = text === null ? [] : ["Content-Type", "application/json"];
  // A client reads JSON from an answer that does not say that it is empty.
  const fields = status === NO_CONTENT ? [] : [...type, "Content-Length", String(text?.length ?? 0)];
  down.head(status, STATUS_CODES[status] ?? "", [...fields, ...headers, "Cache-Control", "no-store"]);
  if (text !== null) down.write(text);
  down.end([]);
}
