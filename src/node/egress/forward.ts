/** Passes HTTP requests of a workload on, each one judged for itself. */
import type { Agent, IncomingMessage, RequestOptions, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { WorkloadRules } from "../../lib/network/egress/workload-rules.ts";
import { request } from "../../lib/network/node-http.ts";
import type { Admitted, Dialler } from "./dialler.ts";
import { answer, type EgressRefusal, isRefusal, RefusalError, rawAnswer, refusal, refusedBy } from "./refusal.ts";
import { authorityOf, parseHostHeader } from "./target.ts";

/** The way of a client's requests to one destination. */
export interface Passage {
  uid: string;
  admitted: Admitted;
  /** The requests leave over TLS. */
  secure: boolean;
  /** Makes the connections to the destination. */
  agent: Agent;
}

/** Headers that belong to one connection and are not passed on. */
const HOP_BY_HOP = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

const BROKEN = refusal(502, "connection_broken", "The connection broke.");

export async function forward(
  dialler: Dialler,
  passage: Passage,
  path: string,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const rules = await judgeRequest(dialler, passage, path, incoming);
  if (isRefusal(rules)) return answer(response, rules);
  const outgoing = request(outgoingOptions(passage, path, incoming));
  response.once("close", () => outgoing.destroy());
  outgoing.once("error", (error) => {
    if (response.headersSent) response.destroy();
    else answer(response, refusalOf(error));
  });
  outgoing.once("response", (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.statusMessage ?? "", passedOn(answered.rawHeaders));
    answered.pipe(response);
    answered.once("error", () => response.destroy());
  });
  incoming.pipe(outgoing);
}

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
  const outgoing = request({
    ...options,
    headers: [...options.headers, "connection", "upgrade", "upgrade", incoming.headers.upgrade ?? ""],
  });
  client.once("close", () => outgoing.destroy());
  outgoing.once("error", (error) => client.end(rawAnswer(refusalOf(error))));
  outgoing.once("response", (answered) => {
    client.write(rawHead(answered, ["connection", "close"]));
    answered.pipe(client);
  });
  outgoing.once("upgrade", (answered, upstream, first) => {
    client.write(rawHead(answered, ["connection", "upgrade", "upgrade", answered.headers.upgrade ?? ""]));
    if (head.length > 0) upstream.write(head);
    if (first.length > 0) client.write(first);
    join(client, upstream);
  });
  outgoing.end();
}

/** Copies both ways until either side is gone. */
export function join(client: Duplex, upstream: Duplex): void {
  upstream.once("error", () => client.destroy());
  upstream.once("close", () => client.destroy());
  client.once("close", () => upstream.destroy());
  client.pipe(upstream).pipe(client);
}

/** The request must be for the host of its connection: a server of many hosts would answer for another one. */
async function judgeRequest(
  dialler: Dialler,
  { uid, admitted }: Passage,
  path: string,
  incoming: IncomingMessage,
): Promise<WorkloadRules | EgressRefusal> {
  const { target } = admitted;
  const rules = await dialler.admitRequest(uid, admitted, { method: incoming.method ?? "GET", path });
  if (isRefusal(rules)) return rules;
  const named = parseHostHeader(hostHeaderOf(incoming));
  if (named?.text === target.host.text) return rules;
  const listed = named && target.host.address ? rules.policy.judgeName(named) : null;
  if (listed?.allowed) return rules;
  const refused =
    listed && named ? refusedBy(named.text, listed.rule) : refusedBy(named?.text ?? "The request", HOST_MISMATCH);
  dialler.tell(uid, target, refused);
  return refused;
}

export const HOST_MISMATCH = "the rule that a request is for the host of its connection";

const hostHeaderOf = ({ headers }: IncomingMessage): string => String(headers[":authority"] ?? headers.host ?? "");

function outgoingOptions(
  { admitted, secure, agent }: Passage,
  path: string,
  { method = "GET", rawHeaders }: IncomingMessage,
): RequestOptions & { headers: string[] } {
  return { agent, method, path, headers: ["host", authorityOf(admitted.target, secure), ...passedOn(rawHeaders)] };
}

export const refusalOf = (error: Error): EgressRefusal => (error instanceof RefusalError ? error.refusal : BROKEN);

function rawHead({ statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage, more: string[]): string {
  const headers = [...passedOn(rawHeaders), ...more];
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
