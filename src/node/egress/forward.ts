/** Passes HTTP requests of a workload on, each one judged for itself. */
import type { Agent, IncomingMessage, RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import type { FilledRoute, Route } from "../../lib/network/egress/routes.ts";
import type { WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import { request } from "../../lib/network/node-http.ts";
import type { Admitted, Dialler } from "./dialler.ts";
import type { HeldBytes } from "./held-bytes.ts";
import { type IdentityOf, withIdentities } from "./identities.ts";
import { inject, readWhole } from "./inject.ts";
import { flow, type Paces } from "./pace.ts";
import { redactable, redactor, redactText } from "./redact.ts";
import { type EgressRefusal, isRefusal, RefusalError, rawAnswer, refusal, refusedBy } from "./refusal.ts";
import { type Incoming, refuse, type Sink } from "./sink.ts";
import { authorityOf, parseHostHeader } from "./target.ts";

/** The way of a client's requests to one destination. */
export interface Passage {
  uid: string;
  admitted: Admitted;
  /** The requests leave over TLS. */
  secure: boolean;
  /** Makes the connections to the destination. */
  agent: Agent;
  /** Counts the bodies that are held until they are whole. */
  bodies: HeldBytes;
  /** Makes the tokens that routes fill in. */
  identityOf: IdentityOf;
}

/** Headers that belong to one connection and are not passed on. */
const HOP_BY_HOP = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

const BROKEN = refusal(502, "connection_broken", "The connection broke.");
const NOT_A_PATH = refusal(400, "malformed_request", "A request inside a tunnel names a path without a fragment.");
const BODY_NOT_TAKEN = refusal(504, "body_not_taken", "The host took too long to take the body of the request.");
const REPEATED = refusal(405, "method_refused", "A server repeats such a request as its answer, with its secrets.");
const MALFORMED_SECRET = refusal(502, "secret_malformed", "A secret of this route cannot be sent in a header.");
const UNREADABLE_ANSWER = refusal(
  502,
  "answer_not_readable",
  "The answer is compressed, so its secrets cannot be redacted, which this route asks for.",
);
/** Methods whose answer is the request. */
const REPEATING = ["TRACE", "TRACK"];

export async function forward(
  dialler: Dialler,
  passage: Passage,
  path: string,
  incoming: Incoming,
  sink: Sink,
): Promise<void> {
  const rules = await judgeRequest(dialler, passage, path, incoming);
  if (isRefusal(rules)) return refuse(sink, rules);
  const found = routesFor(passage, rules, path, incoming);
  if (found.length > 0 && REPEATING.includes(incoming.method ?? "")) return refuse(sink, REPEATED);
  const routes = await withIdentities(found, passage);
  if (isRefusal(routes)) return refuse(sink, routes);
  const secrets = redactedIn(routes);
  const options = outgoingOptions(passage, path, incoming);
  const paces = dialler.pacesOf(passage.uid, rules);
  const given = secrets.length > 0 ? withoutHeaders(options.headers, UNREADABLE) : options.headers;
  const hold = passage.bodies.open({ uid: passage.uid, workspace: rules.owner?.workspace ?? null });
  sink.body.once("close", hold.release);
  const injected = await inject(routes, given, (bytesMax) => readWhole(incoming, bytesMax, hold)).catch(refusalIn);
  if (isRefusal(injected)) {
    hold.release();
    incoming.resume(); // unread bytes of one request hold up the other requests of an HTTP/2 connection
    return refuse(sink, injected);
  }
  const outgoing = request({ ...options, headers: injected.headers });
  hold.onLate = () => {
    hold.release();
    if (!sink.isBegun()) refuse(sink, BODY_NOT_TAKEN);
    outgoing.destroy();
  };
  outgoing.once("finish", hold.release);
  sink.body.once("close", () => outgoing.destroy());
  outgoing.once("error", (error) => {
    if (sink.body.writableEnded) return; // the proxy itself has answered
    if (sink.isBegun()) sink.body.destroy();
    else refuse(sink, refusalOf(error));
  });
  outgoing.once("response", (answered) => {
    if (secrets.length > 0 && answered.headers["content-encoding"] !== undefined) {
      outgoing.destroy();
      return refuse(sink, UNREADABLE_ANSWER);
    }
    const headers = passedOn(answered.rawHeaders);
    paces.receive.take(headBytes(headers));
    const { statusCode = 502, statusMessage = "" } = answered;
    answered.once("error", () => sink.body.destroy());
    if (secrets.length === 0) {
      sink.begin(statusCode, statusMessage, headers);
      return void flow(answered, sink.body, paces.receive);
    }
    const shown = withoutHeaders(headers, /^content-length$/i).map((text) => redactText(text, secrets));
    sink.begin(statusCode, redactText(statusMessage, secrets), shown);
    const redacting = redactor(secrets);
    redacting.pipe(sink.body);
    flow(answered, redacting, paces.receive);
  });
  paces.send.take(headBytes(injected.headers) + (injected.body?.length ?? 0));
  if (injected.body) outgoing.end(injected.body);
  else if (isFramed(injected.headers)) flow(incoming, outgoing, paces.send);
  else outgoing.end();
}

const headBytes = (headers: readonly string[]): number => headers.reduce((sum, { length }) => sum + length, 0);

const refusalIn = (error: unknown): EgressRefusal => (error instanceof RefusalError ? error.refusal : MALFORMED_SECRET);

/** Secrets travel over TLS only. */
const routesFor = (
  { admitted, secure }: Passage,
  { routes }: WorkloadRules,
  path: string,
  { method = "GET" }: Incoming,
): Route[] => (secure ? routes.find(admitted.target.host, { method, path }) : []);

/** Whether a body follows. Without these headers the server would read a body as the next request. */
const isFramed = (headers: readonly string[]): boolean =>
  headers.some((name, index) => index % 2 === 0 && FRAMING.test(name));

const FRAMING = /^(?:content-length|transfer-encoding)$/i;

/** The secrets that the answer must not show. */
const redactedIn = (routes: readonly FilledRoute[]): string[] =>
  redactable(
    routes.flatMap(({ redact, secrets, identities }) =>
      redact ? [...Object.values(secrets), ...Object.values(identities)] : [],
    ),
  );

/** Headers of a request whose answer could not be searched for secrets. */
const UNREADABLE = /^(?:accept-encoding|range|if-range)$/i;

const withoutHeaders = (headers: readonly string[], names: RegExp): string[] =>
  headers.filter((_, index) => !names.test(headers[index - (index % 2)] ?? ""));

/** Passes on a request to change the protocol, such as to WebSocket; then the bytes of both sides. */
export async function forwardUpgrade(
  dialler: Dialler,
  passage: Passage,
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<void> {
  client.on("error", () => client.destroy()); // the client hung up; the other side follows below
  const path = incoming.url ?? "/";
  const rules = await judgeRequest(dialler, passage, path, incoming);
  if (isRefusal(rules)) return void client.end(rawAnswer(rules));
  const options = outgoingOptions(passage, path, incoming);
  const found = routesFor(passage, rules, path, incoming);
  if (found.length > 0 && REPEATING.includes(incoming.method ?? "")) return void client.end(rawAnswer(REPEATED));
  const routes = await withIdentities(found, passage);
  if (isRefusal(routes)) return void client.end(rawAnswer(routes));
  const secrets = redactedIn(routes);
  const given = secrets.length > 0 ? withoutHeaders(options.headers, UNREADABLE) : options.headers;
  const injected = await inject(routes, given, async () => null).catch(() => null);
  if (!injected) return void client.end(rawAnswer(MALFORMED_SECRET));
  const paces = dialler.pacesOf(passage.uid, rules);
  const outgoing = request({
    ...options,
    headers: [...injected.headers, "connection", "upgrade", "upgrade", incoming.headers.upgrade ?? ""],
  });
  client.once("close", () => outgoing.destroy());
  outgoing.once("error", (error) => client.end(rawAnswer(refusalOf(error))));
  outgoing.once("response", (answered) => {
    if (secrets.length > 0 && answered.headers["content-encoding"] !== undefined) {
      outgoing.destroy();
      return void client.end(rawAnswer(UNREADABLE_ANSWER));
    }
    client.write(redactText(rawHead(answered, ["connection", "close"], FRAMING), secrets));
    const redacting = redactor(secrets);
    redacting.pipe(client);
    flow(answered, redacting, paces.receive);
  });
  outgoing.once("upgrade", (answered, upstream, first) => {
    const more = ["connection", "upgrade", "upgrade", answered.headers.upgrade ?? ""];
    client.write(redactText(rawHead(answered, more), secrets));
    if (head.length > 0) upstream.write(head);
    if (first.length > 0) client.write(first);
    join(client, upstream, paces);
  });
  outgoing.end();
}

/** Copies both ways until either side is gone. */
export function join(client: Duplex, upstream: Duplex, { send, receive }: Paces): void {
  upstream.once("error", () => client.destroy());
  upstream.once("close", () => client.destroy());
  client.once("close", () => upstream.destroy());
  flow(client, upstream, send);
  flow(upstream, client, receive);
}

/** The request must be for the host of its connection: a server of many hosts would answer for another one. */
async function judgeRequest(
  dialler: Dialler,
  { uid, admitted }: Passage,
  path: string,
  incoming: Incoming,
): Promise<WorkloadRules | EgressRefusal> {
  const { target } = admitted;
  const http = { method: incoming.method ?? "GET", path };
  // In the absolute form a server would take the host from the target and not from the header.
  if (!/^\/[^#]*$/.test(path) && !(http.method === "OPTIONS" && path === "*")) return NOT_A_PATH;
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

export const HOST_MISMATCH = "the rule that a request is for the host of its connection";

const hostHeaderOf = ({ headers }: Incoming): string => String(headers[":authority"] ?? headers.host ?? "");

function outgoingOptions(
  { admitted, secure, agent }: Passage,
  path: string,
  { method = "GET", rawHeaders }: Incoming,
): RequestOptions & { headers: string[] } {
  return { agent, method, path, headers: ["host", authorityOf(admitted.target, secure), ...passedOn(rawHeaders)] };
}

export const refusalOf = (error: Error): EgressRefusal => (error instanceof RefusalError ? error.refusal : BROKEN);

function rawHead(
  { statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage,
  more: string[],
  dropped = /^$/,
): string {
  const headers = [...withoutHeaders(passedOn(rawHeaders), dropped), ...more];
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("\r\n")}\r\n\r\n`;
}

function passedOn(rawHeaders: string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (!HOP_BY_HOP.has(name.toLowerCase()) && !name.startsWith(":")) kept.push(name, rawHeaders[index + 1] ?? "");
  }
  return kept;
}
