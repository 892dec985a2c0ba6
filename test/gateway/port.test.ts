/** Ports of a sandbox below its own address. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import type { Door } from "../../src/gateway/deps.ts";
import { inBothLanes, listen } from "./harness.ts";

inBothLanes("a sandbox's ports are below its address, for requests and for WebSockets", async (start, t) => {
  const server = createServer((req, res) =>
    res.end(JSON.stringify([req.url, req.headers["x-forwarded-prefix"], req.headers.authorization ?? null])),
  );
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket, req) => {
    socket.send(String(req.url));
    socket.on("message", (data) => socket.send(data));
  });
  const upstream = await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
    for (const socket of sockets.clients) socket.terminate();
  });
  const doors: Door[] = [];
  const dial = async (_lease: unknown, door: Door) => {
    doors.push(door);
    const socket = connect(upstream, "127.0.0.1");
    await once(socket, "connect");
    return socket;
  };
  const workloads = [{ kind: "sandbox" as const, name: "s", door: "api" as const }];
  await using gw = await start({ upstream, workloads, deps: { dial } });

  const headers = { authorization: "Bearer good" };
  const answer = await fetch(`${gw.url}/ws/sandboxes/s/port/3000//a%2Fb?x=1`, { headers });
  assert.deepEqual(await answer.json(), ["//a%2Fb?x=1", "/ws/sandboxes/s/port/3000", null]);
  assert.equal((await fetch(`${gw.url}/ws/sandboxes/s/port/3000/`)).status, 401);
  assert.equal((await fetch(`${gw.url}/ws/sandboxes/s/port/70000/`, { headers })).status, 400);

  const client = new WebSocket(`ws://127.0.0.1:${gw.port}/ws/sandboxes/s/port/3001/chat?token=good`);
  t.after(() => client.terminate());
  assert.equal(String((await once(client, "message"))[0]), "/chat");
  client.send("echo");
  assert.equal(String((await once(client, "message"))[0]), "echo");
  assert.deepEqual(doors, [3000, 3001]);
  client.close();
  await once(client, "close");
});
