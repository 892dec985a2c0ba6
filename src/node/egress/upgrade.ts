/** Passes on a request to change the protocol, such as to WebSocket; then the bytes of both sides. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { request } from "../../lib/network/node-http.ts";
import type { Dialler } from "./dialler.ts";
import { FRAMING, passedOn, withoutHeaders } from "./headers.ts";
import { withIdentities } from "./identities.ts";
import { inject } from "./inject.ts";
import { judgeRequest, routesFor } from "./judge-request.ts";
import { flow, join } from "./pace.ts";
import type { Passage } from "./passage.ts";
import { hidesSecrets, redactedIn, redactor, redactText, UNREADABLE, UNREADABLE_ANSWER } from "./redact.ts";
import { isRefusal, MALFORMED_SECRET, rawAnswer, refusalOf } from "./refusal.ts";
import { authorityOf } from "./target.ts";

export async function forwardUpgrade(
  dialler: Dialler,
  passage: Passage,
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<void> {
  client.on("error", () => client.destroy()); // the client hung up; the other side follows below
  const { method = "GET", url: path = "/", rawHeaders } = incoming;
  const rules = await judgeRequest(dialler, passage, path, incoming);
  if (isRefusal(rules)) return void client.end(rawAnswer(rules));
  const found = routesFor(passage, rules, path, incoming);
  const routes = isRefusal(found) ? found : await withIdentities(found, passage);
  if (isRefusal(routes)) return void client.end(rawAnswer(routes));
  const secrets = redactedIn(routes);
  const passed = ["host", authorityOf(passage.admitted.target, passage.secure), ...passedOn(rawHeaders)];
  const given = secrets.length > 0 ? withoutHeaders(passed, UNREADABLE) : passed;
  const injected = await inject(routes, given, async () => null).catch(() => null);
  if (!injected) return void client.end(rawAnswer(MALFORMED_SECRET));
  const paces = dialler.pacesOf(passage.uid, rules);
  const headers = [...injected.headers, "connection", "upgrade", "upgrade", incoming.headers.upgrade ?? ""];
  const outgoing = request({ agent: passage.agent, method, path, headers });
  client.once("close", () => outgoing.destroy());
  outgoing.once("error", (error) => client.end(rawAnswer(refusalOf(error))));
  outgoing.once("response", (answered) => {
    if (secrets.length > 0 && hidesSecrets(answered.rawHeaders)) {
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

function rawHead(
  { statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage,
  more: string[],
  dropped = /^$/,
): string {
  const headers = [...withoutHeaders(passedOn(rawHeaders), dropped), ...more];
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("\r\n")}\r\n\r\n`;
}
