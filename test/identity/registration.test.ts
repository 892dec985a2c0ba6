/** What of self-registered programs needs another clock; the rest asks an installation (test/installed). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { Browser } from "./browser.ts";
import { addPerson } from "./people.ts";
import { CALLBACK, type Person } from "./program.ts";
import { selfRegistered } from "./registration-suite.ts";

describe("programs that register themselves, over time", () => {
  let platform: TestPlatform;
  let person: Person;
  let aheadMs = 0;
  before(async () => {
    platform = await startTestPlatform({ clock: { now: () => Date.now() + aheadMs } });
    person = await addPerson(platform);
  });
  after(() => platform.stop());
  const { register, authorize, consentTo } = selfRegistered(
    () => platform.url,
    () => person,
  );

  test("one that nobody allows anything is forgotten, and many at once are slowed down", async () => {
    aheadMs += DAY_MS / 24; // a new quarter of an hour
    const { body } = await register({ redirect_uris: [CALLBACK] });
    const used = (await register({ redirect_uris: [CALLBACK] })).body.client_id ?? "";
    const browser = new Browser(platform.url);
    await browser.submit(await consentTo(browser, authorize(used)), { step: "allow" });
    const first = await new Browser(platform.url).visit(authorize(body.client_id ?? ""));
    assert.match(first.text, /Sign in/);
    aheadMs += 2 * DAY_MS;
    assert.match((await new Browser(platform.url).visit(authorize(body.client_id ?? ""))).text, /did not work/);
    assert.match((await new Browser(platform.url).visit(authorize(used))).text, /Sign in/);
    const answers = await Promise.all(Array.from({ length: 40 }, () => register({ redirect_uris: [CALLBACK] })));
    assert.equal(answers.filter(({ status }) => status === 201).length, 30);
    assert.equal(answers.filter(({ status }) => status === 429).length, 10);
  });
});
