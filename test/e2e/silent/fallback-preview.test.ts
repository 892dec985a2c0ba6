/** Hosts below a verified domain that nobody has are served by the preview that its owner named. */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { FakeMachine, fakeDriver } from "../../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";
import { draftOf } from "../../store.ts";

const app = createServer((req, res) => res.end(`app at ${req.headers.host ?? ""}`));
let port = 0;
const machine = new FakeMachine({ images: ["service/base-image:latest"], portOf: () => port });
let platform: TestPlatform;
before(async () => {
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  port = (app.address() as AddressInfo).port;
  platform = await startTestPlatform({ driver: fakeDriver(machine) });
});
after(async () => {
  await platform.stop();
  await machine.dispose();
  app.closeAllConnections();
  app.close();
});

const get = (host: string): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const asked = request(platform.url, { headers: { host }, agent: false }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    asked.on("error", reject);
    asked.end();
  });

/** The gateway hears of a changed domain a moment later. */
async function until(host: string, status: number): Promise<string> {
  for (const deadline = Date.now() + 60_000; ; ) {
    const { status: got, text } = await get(host);
    if (got === status) return text;
    assert.ok(Date.now() < deadline, `${host}: ${got} ${text}`);
    await pause(20);
  }
}

test("a name that nobody has leads to the fallback, and elsewhere once that is taken away", async () => {
  await platform.app.store.resources.create(
    draftOf("customdomain", "apps.example.test", {
      uid: "01900000-0000-7000-8000-0000000000aa",
      spec: { status: "verified", domainType: "previews", region: "local" },
    }),
  );
  await platform.call("POST", "/sandboxes", { body: { metadata: { name: "box" } } });
  const preview = (name: string, spec: object) =>
    platform.call("POST", "/sandboxes/box/previews", { body: { metadata: { name }, spec } });
  assert.equal((await preview("web", { port: 3000, public: true })).status, 200);
  const own = { port: 3000, public: false, customDomain: "apps.example.test", prefixUrl: "own" };
  assert.equal((await preview("own", own)).status, 200);

  const domain = (await platform.call("GET", "/customdomains/apps.example.test")).body;
  const name = (fallbackPreviewId: string) =>
    platform.call("PUT", "/customdomains/apps.example.test", {
      body: { ...domain, spec: { ...domain.spec, fallbackPreviewId } },
    });
  const early = await name("nothing");
  assert.equal(early.status, 200);
  assert.match(early.headers.get("warning") ?? "", /there is no preview 'nothing' in this workspace yet/);

  const named = await name("web");
  assert.equal(named.status, 200, JSON.stringify(named.body));
  assert.equal(named.body.spec.fallbackPreviewId, "web");
  assert.match(await until("anything.apps.example.test", 200), /app at/);
  assert.match(await until("a.b.apps.example.test", 200), /app at/);
  assert.equal((await get("own.apps.example.test")).status, 401, "a name that somebody has is theirs");
  assert.doesNotMatch((await get("other.example.test")).text, /app at/);
  assert.doesNotMatch((await get("notapps.example.test")).text, /app at/);

  const taken = await name("");
  assert.equal(taken.body.spec.fallbackPreviewId, undefined);
  await until("anything.apps.example.test", 404);
});
