/** Judges one HTTP request of a workload, and finds the routes that apply to it. */
import type { Route } from "../../lib/network/egress/routes.ts";
import type { WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import type { Dialler } from "./dialler.ts";
import type { Passage } from "./passage.ts";
import { type EgressRefusal, isRefusal, refusal, refusedBy } from "./refusal.ts";
import type { Incoming } from "./sink.ts";
import { parseHostHeader } from "./target.ts";

export const HOST_MISMATCH = "the rule that a request is for the host of its connection";
const NOT_A_PATH = refusal(400, "malformed_request", "A request inside a tunnel names a path without a fragment.");
const NOT_A_METHOD = refusal(400, "malformed_request", "The method of the request is no word.");
export const REPEATED = refusal(
  405,
  "method_refused",
  "A server repeats such a request as its answer, with its secrets.",
);

/** Visible characters without `#`: HTTP/2 would carry others, too. */
const PATH = /^\/[!"$-~\u0080-\u00ff]*$/;
const METHOD = /^[\w!#$%&'*+.^`|~-]+$/;

/** Servers may read a method in any case. */
const methodOf = ({ method = "GET" }: Incoming): string => method.toUpperCase();

/** Whether the answer to this method is the request. */
const repeats = (method: string): boolean => ["TRACE", "TRACK"].includes(method);

/** The request must be for the host of its connection: a server of many hosts would answer for another one. */
export async function judgeRequest(
  dialler: Dialler,
  { uid, admitted }: Passage,
  path: string,
  incoming: Incoming,
): Promise<WorkloadRules | EgressRefusal> {
  const { target } = admitted;
  const http = { method: methodOf(incoming), path };
  if (!METHOD.test(http.method)) return NOT_A_METHOD;
  // In the absolute form a server would take the host from the target and not from the header.
  if (!PATH.test(path) && !(http.method === "OPTIONS" && path === "*")) return NOT_A_PATH;
  const rules = await dialler.admitRequest(uid, admitted, http);
  if (isRefusal(rules)) return rules;
  const named = parseHostHeader(hostHeaderOf(incoming));
  if (named?.text === target.host.text) return rules;
  const { address } = target.host;
  const listed =
    named && address
      ? rules.policy.judge({ ...{ host: named, port: target.port, address, http }, transport: "tcp" })
      : null;
  if (listed?.allowed) return rules;
  const refused =
    listed && named ? refusedBy(named.text, listed.rule) : refusedBy(named?.text ?? "The request", HOST_MISMATCH);
  dialler.tell(uid, target, refused);
  return refused;
}

const hostHeaderOf = ({ headers }: Incoming): string => String(headers[":authority"] ?? headers.host ?? "");

/** Secrets travel over TLS only. */
export function routesFor(
  { admitted, secure }: Passage,
  { routes }: WorkloadRules,
  path: string,
  incoming: Incoming,
): Route[] | EgressRefusal {
  const method = methodOf(incoming);
  const found = secure ? routes.find(admitted.target.host, { method, path }) : [];
  return found.length > 0 && repeats(method) ? REPEATED : found;
}
