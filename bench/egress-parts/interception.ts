/** HTTPS requests through the egress proxy, which ends TLS for hosts of routes, and through a bare proxy that does the same. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Agent, createServer as createHttps, request as requestHttps } from "node:https";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { type createServer as createTls, connect as tlsConnect } from "node:tls";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import { startEgressProxy } from "../../src/node/egress/egress-proxy.ts";
import { testAuthority } from "../../test/tls-credential.ts";
import { type Load, load } from "../measure.ts";

const HOST = "api.test";

export async function interception(durationMs: number): Promise<Record<"bare" | "ours", Load>> {
  const [world, workspace] = [testAuthority("world"), testAuthority("workspace")];
  const of = ({ credentialOf }: typeof world) => {
    const { certificate: cert, key } = credentialOf(HOST);
    return { cert, key };
  };
  const upstream = createHttps(of(world), (_, response) => void response.end("hello"));
  const port = await listening(upstream);
  const rules = compileNetwork({
    proxy: { routing: [{ destinations: [HOST], headers: { "x-key": "{{SECRET:k}}" }, secrets: { k: "hush" } }] },
  });
  const credential = workspace.credentialOf(HOST);
  const proxy = startEgressProxy({
    rules: { of: async () => rules, onChange: () => () => {} },
    allowed: () => true,
    resolve: async () => ["127.0.0.1"],
    credentialOf: async () => credential,
    authorities: world.certificate,
  });
  const door = createServer({ allowHalfOpen: true }, (socket) => proxy.serve("box", socket));
  const doorPort = await listening(door);
  const agent = new Agent({ keepAlive: true, ca: world.certificate });
  const bare = createHttps(of(workspace), (incoming, response) => {
    const headers = { ...incoming.headers, "x-key": "hush" };
    const passed = requestHttps(
      { host: "127.0.0.1", port, servername: HOST, agent, method: incoming.method, path: incoming.url, headers },
      (answered) => {
        response.writeHead(answered.statusCode ?? 502, answered.rawHeaders);
        answered.pipe(response);
      },
    );
    incoming.pipe(passed);
  });
  const barePort = await listening(bare);
  const ours = async () => {
    const socket = connect(doorPort, "127.0.0.1");
    socket.write(`CONNECT ${HOST}:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(socket, "data");
    return socket;
  };
  const direct = async () => connect(barePort, "127.0.0.1");
  try {
    const measure = async (open: typeof ours): Promise<Load> => {
      const socket = await open();
      const stream = tlsConnect({ socket, servername: HOST, ca: workspace.certificate });
      await once(stream, "secureConnect");
      const one = new (await import("node:http")).Agent({ keepAlive: true, maxSockets: 1 });
      one.createConnection = () => stream;
      const result = await load(1, durationMs, async () => {
        const sent = request({ agent: one, host: HOST, headers: { host: `${HOST}:${port}` } }).end();
        const [answered] = (await once(sent, "response")) as [IncomingMessage];
        for await (const _ of answered);
      });
      stream.destroy();
      return result;
    };
    await measure(direct);
    await measure(ours);
    return { bare: await measure(direct), ours: await measure(ours) };
  } finally {
    agent.destroy();
    await proxy.stop();
    for (const server of [upstream, bare]) server.closeAllConnections();
    for (const server of [upstream, bare, door]) server.close();
  }
}

async function listening(server: Server | ReturnType<typeof createTls>): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
