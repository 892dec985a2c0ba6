/**
 * The routes of `proxy.routing`: requests to the listed hosts leave with headers and body fields that the platform
 * fills in. The platform reads such requests, so HTTPS to these hosts ends at the platform's proxy and begins anew there.
 */
import { domainSet } from "./domain-set.ts";
import type { Host } from "./host.ts";
import { type HttpRequest, pathMatches } from "./http-target.ts";
import { audiencesIn, placeholderProblem } from "./placeholders.ts";
import { RuleProblem } from "./rule-problem.ts";

/** As written in the specification, with the secrets in clear text. */
export interface RouteSpec {
  /** `host`, `*.parent` or `*`; optionally with methods and a path: `GET:POST:api.example.com/v1/*`, `!DELETE:api.example.com`. */
  destinations?: readonly string[] | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  body?: Readonly<Record<string, unknown>> | undefined;
  secrets?: Readonly<Record<string, string>> | undefined;
  /** Replace the secrets and tokens of this route in answers. */
  redact?: boolean | undefined;
}

export interface Route {
  headers: Readonly<Record<string, string>>;
  body: Readonly<Record<string, unknown>>;
  secrets: Readonly<Record<string, string>>;
  /** The audiences of the tokens that this route fills in. */
  audiences: readonly string[];
  redact: boolean;
}

/** A route with its tokens, by audience. */
export interface FilledRoute extends Route {
  identities: Readonly<Record<string, string>>;
}

export interface Routes {
  readonly any: boolean;
  /** Whether requests to this host are read by the platform. */
  reads(host: Host): boolean;
  /** The routes that apply to a request, in the order of the specification. */
  find(host: Host, request: HttpRequest): Route[];
}

export interface RoutingSpec {
  routing?: readonly RouteSpec[] | undefined;
  bypass?: readonly string[] | undefined;
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
/** A field value of HTTP: no control characters, which would end the field. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers that describe the message or the connection; a route that sets them would break the request. */
const HEADERS_KEPT =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|proxy-.*|:.*)$/i;
/** Audiences of one route; each is a token that the platform signs. */
const AUDIENCES_MAX = 10;
const METHOD = /^[A-Z]{1,32}$/;

export const NO_ROUTES: Routes = { any: false, reads: () => false, find: () => [] };

/** Throws RuleProblem. `place` is where the member `proxy` stands. */
export function routesOf({ routing = [], bypass = [] }: RoutingSpec, place: string): Routes {
  const untouched = domainSet(bypass.map((pattern, index) => ({ pattern, path: `${place}.bypass[${index}]` })));
  const compiled = routing.map((spec, index) => {
    const at = `${place}.routing[${index}]`;
    const targets = (spec.destinations ?? []).map((text, number) => parseTarget(text, `${at}.destinations[${number}]`));
    if (targets.length === 0) throw new RuleProblem(`${at}.destinations`, "must name at least one host");
    return { targets, route: checkedRoute(spec, at) };
  });
  if (compiled.length === 0) return NO_ROUTES;
  const isRead = (host: Host): boolean => untouched.find(host) === null;
  return {
    any: true,
    reads: (host) => isRead(host) && compiled.some(({ targets }) => targets.some((target) => target.hosts(host))),
    find: (host, request) =>
      isRead(host)
        ? compiled
            .filter(({ targets }) => targets.some((target) => target.hosts(host) && target.request(request)))
            .map(({ route }) => route)
        : [],
  };
}

function checkedRoute({ headers = {}, body = {}, secrets = {}, redact = false }: RouteSpec, at: string): Route {
  const texts: [path: string, text: string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    const path = `${at}.headers.${name}`;
    if (!HEADER_NAME.test(name)) throw new RuleProblem(path, "is not the name of a header");
    if (HEADERS_KEPT.test(name)) throw new RuleProblem(path, "belongs to the connection and cannot be set");
    if (!HEADER_VALUE.test(value))
      throw new RuleProblem(
        path,
        "must hold no other characters than a header may have: Latin letters, digits and signs",
      );
    for (const [, secret = ""] of value.matchAll(/\{\{SECRET:([^{}]+)\}\}/g))
      if (!HEADER_VALUE.test(secrets[secret] ?? ""))
        throw new RuleProblem(
          `${at}.secrets.${secret}`,
          "is used in a header and must hold no other characters than a header may have: Latin letters, digits and signs",
        );
    texts.push([path, value]);
  }
  collectTexts(body, `${at}.body`, texts);
  for (const [path, text] of texts) {
    const problem = placeholderProblem(text, secrets);
    if (problem !== null) throw new RuleProblem(path, problem);
  }
  const audiences = [...new Set(texts.flatMap(([, text]) => audiencesIn(text)))];
  if (audiences.length > AUDIENCES_MAX)
    throw new RuleProblem(at, `names ${audiences.length} audiences; one route may have ${AUDIENCES_MAX}`);
  return { headers, body, secrets, audiences, redact };
}

function collectTexts(value: unknown, path: string, texts: [string, string][]): void {
  if (typeof value === "string") texts.push([path, value]);
  else if (value !== null && typeof value === "object")
    for (const [key, member] of Object.entries(value)) collectTexts(member, `${path}.${key}`, texts);
}

interface Target {
  hosts(host: Host): boolean;
  request(request: HttpRequest): boolean;
}

function parseTarget(text: string, path: string): Target {
  const isNot = text.startsWith("!");
  const slash = text.indexOf("/");
  const [front, pathPattern] = slash < 0 ? [text, null] : [text.slice(0, slash), text.slice(slash)];
  const words = (isNot ? front.slice(1) : front).split(":");
  const pattern = words.pop() ?? "";
  const set = domainSet([{ pattern, path }]);
  const bad = words.find((word) => !METHOD.test(word));
  if (bad !== undefined)
    throw new RuleProblem(path, `'${bad.slice(0, 40)}' is not a method; write GET:example.com/path`);
  if (isNot && words.length === 0) throw new RuleProblem(path, "needs a method after the exclamation mark");
  if (pathPattern !== null && /\*(?!$)/.test(pathPattern))
    throw new RuleProblem(path, "may have a * only at the end of its path");
  return {
    hosts: (host) => set.find(host) !== null,
    request: ({ method, path: asked }) =>
      (words.length === 0 || words.includes(method) !== isNot) &&
      (pathPattern === null || pathMatches(pathPattern, asked)),
  };
}
