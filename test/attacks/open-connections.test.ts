/** A connection to a workload ends with the right that opened it, in the server and in edge processes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, suite, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { DEFAULT_LIMITS } from "../../src/gateway/limits.ts";
import { HOUR_MS } from "../../src/lib/time/clock.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { makeServiceAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

/** A WebSocket or an answer that goes on. */
interface Open {
  /** Resolves when the connection has ended. */
  ended: Promise<unknown>;
  /** Rejects unless the workload still answers on it. */
  answers(): Promise<void>;
  close(): void;
}

suite("open connections", () => {
  const app = createServer((req, res) => {
    res.write("begun");
    app.on("tick", () => res.write(req.url));
  });
  app.setMaxListeners(0);
  const sockets = new WebSocketServer({ server: app });
  sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
  let appPort = 0;
  const machine = new FakeMachine({ images: ["service/base-image:latest"], portOf: () => appPort });
  const { rightsMs } = DEFAULT_LIMITS;
  before(async () => {
    DEFAULT_LIMITS.rightsMs = HOUR_MS; // changes alone end what is open here
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    appPort = (app.address() as AddressInfo).port;
  });
  after(async () => {
    DEFAULT_LIMITS.rightsMs = rightsMs;
    await machine.dispose();
    for (const socket of sockets.clients) socket.terminate();
    app.closeAllConnections();
    app.close();
  });

  for (const count of [0, 2])
    describe(`with ${count} edge processes`, () => {
      let platform: TestPlatform;
      before(async () => {
        platform = await startTestPlatform({
          driver: fakeDriver(machine),
          config: { edge_processes: String(count), public_url: "http://api.example.com" },
        });
        await made("/sandboxes", { metadata: { name: "box" }, spec: {} });
      });
      after(() => platform?.stop());

      const made = async (path: string, body: object, method = "POST") => {
        const answer = await platform.call(method, path, { body });
        assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
        return answer.body;
      };
      const gone = async (path: string): Promise<void> =>
        assert.ok((await platform.call("DELETE", path, { workspace: "main" })).status < 300, path);

      const socketTo = async (path: string, headers: Record<string, string>): Promise<Open> => {
        const socket = new WebSocket(`${platform.url.replace("http", "ws")}${path}`, { headers });
        const ended = new Promise((resolve) => socket.on("close", resolve));
        socket.on("error", () => undefined);
        await once(socket, "open");
        return {
          ended,
          async answers() {
            socket.send("still here");
            await once(socket, "message");
          },
          close: () => socket.terminate(),
        };
      };
      const streamFrom = async (path: string, headers: Record<string, string>): Promise<Open> => {
        const asked = request(`${platform.url}${path}`, { agent: false, headers }).end();
        const [answer] = (await once(asked, "response")) as [IncomingMessage];
        assert.equal(answer.statusCode, 200);
        answer.on("error", () => undefined);
        const ended = new Promise((resolve) => answer.on("close", resolve));
        await once(answer, "data");
        return {
          ended,
          async answers() {
            const heard = once(answer, "data");
            app.emit("tick");
            await heard;
          },
          close: () => asked.destroy(),
        };
      };
      const PORT = "/main/sandboxes/box/port/3000/x";
      const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

      interface Case {
        path: string;
        headers: Record<string, string>;
        end(): Promise<unknown>;
      }
      const byPreview = async (spec: object, end: (token: string) => Promise<unknown>): Promise<Case> => {
        await made("/sandboxes/box/previews", {
          metadata: { name: "door" },
          spec: { port: 3000, prefixUrl: "door", ...spec },
        });
        const { metadata, spec: token } = await made("/sandboxes/box/previews/door/tokens", {
          metadata: { name: "t" },
          spec: { expiresAt: new Date(Date.now() + 3_600_000).toISOString() },
        });
        return {
          path: "/main/previews/door-main/x",
          headers: { "x-service-preview-token": token.token },
          end: () => end(metadata.name),
        };
      };
      const cases: Record<string, () => Promise<Case>> = {
        "a key that is deleted": async () => {
          const key = await made("/api_keys", { name: "brief" });
          return { path: PORT, headers: bearer(key.apiKey), end: () => gone(`/api_keys/${key.id}`) };
        },
        "a service account that is deleted": async () => {
          const { key, sub } = await makeServiceAccount(platform.app.store, "main");
          return { path: PORT, headers: bearer(key), end: () => gone(`/service_accounts/${sub}`) };
        },
        "a member who is removed": async () => {
          const { store } = platform.app;
          const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
          const { key, sub } = await makeUser(store, accountId, "member", { main: "member" });
          return { path: PORT, headers: bearer(key), end: () => gone(`/users/${sub}`) };
        },
        "a sandbox that is kept to admins": async () => {
          const { key } = await makeServiceAccount(platform.app.store, "main", "member");
          const body = { metadata: { name: "box" }, spec: { access: { roles: ["admin"] } } };
          return { path: PORT, headers: bearer(key), end: () => made("/sandboxes/box", body, "PUT") };
        },
        "a preview token that is deleted": () =>
          byPreview({}, async (name) => {
            await gone(`/sandboxes/box/previews/door/tokens/${name}`);
          }),
        "a preview that is deleted": () => byPreview({}, () => gone("/sandboxes/box/previews/door")),
        "a public preview that becomes private": async () => {
          const byToken = await byPreview({ public: true }, () =>
            made(
              "/sandboxes/box/previews/door",
              { metadata: { name: "door" }, spec: { port: 3000, prefixUrl: "door", public: false } },
              "PUT",
            ),
          );
          return { ...byToken, headers: {} };
        },
      };

      for (const [name, prepare] of Object.entries(cases))
        test(`end with ${name}, and those of others go on`, async (t) => {
          t.after(async () => {
            await platform.call("DELETE", "/sandboxes/box/previews/door");
            await made("/sandboxes/box", { metadata: { name: "box" }, spec: {} }, "PUT");
          });
          const { path, headers, end } = await prepare();
          const other = await socketTo(PORT, bearer(platform.apiKey));
          const opened = [await socketTo(path, headers), await streamFrom(path, headers)];
          t.after(() => {
            for (const one of [other, ...opened]) one.close();
          });
          for (const one of opened) await one.answers();
          await end();
          for (const one of opened) await one.ended;
          await other.answers();
        });
    });
});
