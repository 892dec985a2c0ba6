/** A page of a workload tries to put its service worker in front of the pages where people decide. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openChromium } from "../browser/chromium.ts";
import { pageWith, serveWorkload, type WorkloadSite } from "../browser/workload-site.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const WORKER = `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(
  new Response("<title>taken over</title>", { headers: { "content-type": "text/html" } })));
`;

/** Registers the worker for everything that its origin serves. */
const REGISTER = `
const found = await navigator.serviceWorker.register("sw.js", { scope: "/" });
const worker = found.installing ?? found.waiting ?? found.active;
if (worker.state !== "activated") await new Promise((resolve) => worker.addEventListener("statechange", () => worker.state === "activated" && resolve()));
return "registered";
`;

const chromium = await openChromium();

describe("a workload's service worker", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  let site: WorkloadSite;

  before(async () => {
    platform = await startTestPlatform();
    const headers = { "content-type": "text/javascript", "service-worker-allowed": "/" };
    site = await serveWorkload(platform, pageWith(REGISTER, { "/sw.js": { headers, body: WORKER } }));
  });
  after(async () => {
    await chromium.close();
    await site[Symbol.asyncDispose]();
    await platform.stop();
  });

  for (const host of ["127.0.0.1", "localhost"])
    test(`answers no page of the platform (opened at ${host})`, async () => {
      const { page, context } = await chromium.person();
      const base = platform.url.replace("127.0.0.1", host);
      const shown = await page.goto(`${base}${site.path}/`);
      assert.equal(shown?.status(), 200);
      assert.equal(new URL(page.url()).hostname, `${site.id}.preview.localhost`, "an origin of its own");
      await page.waitForFunction("document.title !== 'trying'");
      for (const path of ["/oauth/device", "/docs"]) {
        await page.goto(base + path);
        assert.notEqual(await page.title(), "taken over", `${path}: ${page.url()}`);
      }
      await context.close();
    });
});
