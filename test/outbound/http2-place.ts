/** A client of HTTP/2 inside a workload, and servers of HTTP/2 behind the egress proxy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  createSecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { Server } from "node:net";
import type { TestContext } from "node:test";
import { createServer as createTlsServer, type TLSSocket, connect as tlsConnect } from "node:tls";
import type { NetworkSpec } from "../../src/kinds/workload/network.ts";
import type { EgressOptions } from "../../src/node/egress/egress-proxy.ts";
import { listen, type RuledPlace, ruledPlace } from "../egress-place.ts";
import { testAuthority } from "../tls-credential.ts";

const world = testAuthority("authority of the world");
const workspace = testAuthority("authority of a workspace");
export const SECRET = "sk-hush-4711";
const routing = [
  { destinations: ["api.test"], headers: { Authorization: "Bearer {{SECRET:key}}" }, secrets: { key: SECRET } },
  { destinations: ["echo.test"], headers: { authorization: "{{SECRET:key}}" }, secrets: { key: SECRET }, redact: true },
];
export const NETWORK: NetworkSpec = { proxy: { routing } };

export type Answering = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
/** Takes what a connection carries as it is, after TLS. */
export type RawAnswering = (socket: TLSSocket) => void;

export interface Http2Place extends RuledPlace {
  port: number;
  server: Server;
  /** TLS of the workload. */
  secure(host?: string): Promise<TLSSocket>;
  /** A client of HTTP/2 inside the workload. */
  open(host?: string): Promise<ClientHttp2Session>;
}

interface PlaceOptions extends EgressOptions {
  network?: NetworkSpec;
  /** In place of a server of HTTP/2. */
  raw?: RawAnswering;
  /** What the raw server chooses. */
  protocol?: "h2" | "http/1.1";
}

export async function http2Place(
  t: TestContext,
  answer: Answering,
  { network = NETWORK, raw, protocol = "h2", ...options }: PlaceOptions = {},
): Promise<Http2Place> {
  const { certificate: cert, key } = world.credentialOf("api.test");
  const open = new Set<{ destroy(): void }>();
  const server = raw
    ? createTlsServer({ cert, key, ALPNProtocols: [protocol] }, (socket) => raw(socket.on("error", () => {})))
    : createSecureServer({ cert, key });
  const echo = world.credentialOf("echo.test");
  server.addContext("echo.test", { cert: echo.certificate, key: echo.key });
  server.on("session", (session) => open.add(session.on("error", () => {})));
  server.on("secureConnection", (socket) => open.add(socket));
  server.on("stream", (stream, headers) =>
    answer(
      stream.on("error", () => {}),
      headers,
    ),
  );
  for (const event of ["sessionError", "tlsClientError"]) server.on(event, () => {}); // tests break connections off
  const port = await listen(t, server as unknown as Server);
  t.after(() => {
    for (const each of open) each.destroy();
  });
  const place = await ruledPlace(t, network, {
    credentialOf: async (_, host) => workspace.credentialOf(host),
    authorities: world.certificate,
    ...options,
  });
  const secure: Http2Place["secure"] = async (host = "api.test") => {
    const { head, socket } = await place.tunnel(`${host}:${port}`);
    assert.match(head, /^HTTP\/1\.1 200 /);
    const stream = tlsConnect({ socket, servername: host, ca: workspace.certificate, ALPNProtocols: ["h2"] });
    t.after(() => stream.destroy());
    await once(stream, "secureConnect");
    return stream.on("error", () => {}); // tests break connections off
  };
  return {
    ...{ ...place, port, server: server as unknown as Server, secure },
    async open(host = "api.test") {
      const stream = await secure(host);
      const session = connectHttp2(`https://${host}:${port}`, { createConnection: () => stream });
      session.on("error", () => {}); // tests break connections off
      t.after(() => session.destroy());
      await once(session, "connect");
      return session;
    },
  };
}

export const ask = (session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream =>
  session.request({ ":path": "/", ...headers }, { endStream: headers[":method"] === undefined }).on("error", () => {});

export const headOf = async (stream: ClientHttp2Stream): Promise<IncomingHttpHeaders> =>
  (await once(stream, "response"))[0] as IncomingHttpHeaders;

export const closed = (stream: ClientHttp2Stream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed) resolve();
    else stream.once("close", () => resolve());
  });

export async function textOf(stream: ClientHttp2Stream): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
}
