/**
 * A page of a workload tries to answer a device's question in the name of a person who is signed in, on plain HTTP off
 * loopback, where browsers send no Sec-Fetch fields.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openChromium } from "../browser/chromium.ts";
import { type FrontDoor, openFrontDoor } from "../browser/front-door.ts";
import { makeAdmin, signInAt } from "../browser/people.ts";
import { pageWith, serveWorkload, type WorkloadSite } from "../browser/workload-site.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const chromium = await openChromium();

/** Walks through the pages with fetch, as far as they let it: from the code that an attacker was given to the consent. */
const WALK = `
const asked = new URLSearchParams(location.search);
const base = asked.get("base");
const field = (text, name) => text.match(new RegExp('name="' + name + '" value="([^"]*)"'))?.[1] ?? "";
const send = (url, body) => fetch(url, { method: "POST", body: new URLSearchParams(body), credentials: "include" });
let said = await fetch(base + "/oauth/device", { credentials: "include" });
let text = await said.text();
said = await send(base + "/oauth/device", { xsrf: field(text, "xsrf"), user_code: asked.get("code"), confirm: "yes" });
text = await said.text();
said = await send(said.url, { secret: field(text, "secret"), step: "allow" });
return said.status;
`;
/** The same blindly: answers of another origin cannot be read, but their effect may come about. */
const BLIND = `
const asked = new URLSearchParams(location.search);
const base = asked.get("base");
const blind = { mode: "no-cors", credentials: "include" };
await fetch(base + "/oauth/device?user_code=" + asked.get("code"), blind);
await fetch(base + "/oauth/device", { ...blind, method: "POST", body: new URLSearchParams({ user_code: asked.get("code"), confirm: "yes" }) });
return "sent";
`;

for (const mode of [
  { name: "without a domain of its own", domain: false, console: false },
  { name: "below the workloads' domain", domain: true, console: false },
  { name: "on a site of its own", domain: true, console: true },
])
  describe(`consent by script, the platform ${mode.name}`, { skip: chromium.skip }, () => {
    let platform: TestPlatform;
    let door: FrontDoor;
    const sites: WorkloadSite[] = [];
    let email = "";
    let base = "";

    before(async () => {
      door = await openFrontDoor();
      base = `http://berth.example.test:${door.port}`;
      platform = await startTestPlatform({
        config: {
          public_url: base,
          ...(mode.domain ? { domain: "example.test" } : {}),
          ...(mode.console ? { console_url: `http://console.other.test:${door.port}` } : {}),
        },
      });
      door.leadTo(platform.app.listensAt);
      for (const script of [WALK, BLIND]) sites.push(await serveWorkload(platform, pageWith(script)));
      ({ email } = await makeAdmin(platform));
    });
    after(async () => {
      for (const site of sites) await site[Symbol.asyncDispose]();
      await platform.stop();
      await door[Symbol.asyncDispose]();
    });

    const post = async (path: string, fields: object) => {
      const response = await fetch(platform.app.listensAt + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(fields),
      });
      return (await response.json()) as Record<string, string>;
    };

    test("opens nothing to whoever made the page", async () => {
      const { page, context } = await chromium.person();
      await signInAt(page, base, email);
      const pages = new URL(page.url()).origin;
      for (const { id, path } of sites)
        for (const workload of [
          `${base}${path}/`,
          ...(mode.domain ? [`http://${id}.preview.example.test:${door.port}/`] : []),
        ])
          for (const target of new Set([base, pages])) {
            const { device_code, user_code = "" } = await post("/oauth/device/code", { client_id: "service" });
            const shown = await page.goto(`${workload}?${new URLSearchParams({ base: target, code: user_code })}`);
            assert.equal(shown?.status(), 200, workload);
            await page.waitForFunction("document.title !== 'trying'");
            const grant = "urn:ietf:params:oauth:grant-type:device_code";
            const polled = await post("/oauth/token", { grant_type: grant, client_id: "service", device_code });
            assert.equal(polled.error, "authorization_pending", `${workload} to ${target}: ${JSON.stringify(polled)}`);
          }
      await context.close();
    });
  });

after(() => chromium.close());
