import assert from "node:assert/strict";
import { before, test } from "node:test";
import { previewTokenSlot } from "../../src/contract/preview-tokens.ts";
import { removeOver } from "../../src/kinds/over.ts";
import { onEachDatabase } from "../each-platform.ts";
import { draftOf } from "../store.ts";

let nowMs = Date.parse("2026-11-15T12:00:00Z");
const clock = { now: () => nowMs };
const HOUR_MS = 3600_000;
/** The clock only goes on, also from one database to the next. */
const inHours = (hours: number): string => new Date(nowMs + hours * HOUR_MS).toISOString();

await onEachDatabase(
  "previews",
  ({ call, make, store, url }) => {
    const previews = "/sandboxes/box/previews";
    before(async () => {
      await make("/sandboxes", "box");
      await make("/sandboxes", "other");
    });

    test("a preview has an address, and says what it belongs to", async () => {
      const made = await make(previews, "web", { port: 3000, url: "http://evil.test" }, { resourceName: "not-mine" });
      assert.equal(made.metadata.resourceName, "box");
      assert.equal(made.metadata.resourceType, "sandbox");
      assert.equal(made.spec.public, false);
      assert.equal(made.spec.region, "local");
      assert.match(made.spec.url.slice(url().length), /^\/main\/previews\/[0-9a-f]{32}$/);
      assert.deepEqual((await call("GET", `${previews}/web`)).body.spec, made.spec);
      const listed = await call("GET", previews);
      assert.equal(listed.body[0].metadata.resourceName, "box");
      assert.deepEqual((await call("GET", "/sandboxes/other/previews")).body, []);
    });

    test("a name is taken once in a sandbox, and again in another", async () => {
      await make(previews, "once", { port: 1 });
      const again = await call("POST", previews, { body: { metadata: { name: "once" }, spec: { port: 2 } } });
      assert.deepEqual([again.status, again.body.code], [409, 409]);
      await make("/sandboxes/other/previews", "once", { port: 1 });
      assert.equal((await call("POST", "/sandboxes/none/previews", { body: { metadata: { name: "x" } } })).status, 404);
      const nowhere = await call("POST", "/sandboxes/none/previews", {
        body: { metadata: { name: "x" }, spec: { port: 1 } },
      });
      assert.deepEqual([nowhere.status, nowhere.body.code], [404, 404]);
    });

    test("what is wrong is refused with its path", async () => {
      const cases: [object, RegExp][] = [
        [{}, /spec\.port/],
        [{ port: 80 }, /spec\.port: must not be 80/],
        [{ port: 443000 }, /spec\.port/],
        [{ port: 1, ttl: "x" }, /^spec\.ttl: /],
        [{ port: 1, expires: inHours(-1) }, /^spec\.expires: must be in the future/],
        [{ port: 1, prefixUrl: "No" }, /spec\.prefixUrl/],
        [{ port: 1, prefixUrl: "-a" }, /spec\.prefixUrl/],
        [{ port: 1, customDomain: "not a host" }, /^spec\.customDomain: must be a host name/],
        [{ port: 1, customDomain: "unknown.example.test" }, /^spec\.customDomain: .*verified/],
        [{ port: 1, responseHeaders: { "bad name": "x" } }, /spec\.responseHeaders/],
        [{ port: 1, responseHeaders: { good: "a\r\nSet-Cookie: x" } }, /spec\.responseHeaders\.good/],
      ];
      for (const [spec, message] of cases) {
        const answer = await call("POST", previews, { body: { metadata: { name: "wrong" }, spec } });
        assert.equal(answer.status, 400, JSON.stringify(spec));
        assert.match(answer.body.message, message);
      }
    });

    test("a prefix is one preview's on the whole platform", async () => {
      const made = await make(previews, "shop", { port: 1, prefixUrl: "shop" });
      assert.equal(made.spec.url, `${url()}/main/previews/shop-main`);
      const holder = await store().claims.holderOf("preview-prefix", "main/shop");
      assert.equal(holder?.uid, made.metadata.uid);
      const body = { metadata: { name: "shop2" }, spec: { port: 1, prefixUrl: "shop" } };
      const taken = await call("POST", "/sandboxes/other/previews", { body });
      assert.equal(taken.status, 409);
      assert.match(taken.body.message, /^spec\.prefixUrl: .*preview 'shop'/);
      await call("PUT", `${previews}/shop`, { body: { ...made, spec: { port: 1, prefixUrl: "" } } });
      await make("/sandboxes/other/previews", "shop2", body.spec);
    });

    test("force takes a custom host over from another preview of the workspace", async () => {
      await store().resources.create(
        draftOf("customdomain", "example.test", {
          uid: "01900000-0000-7000-8000-000000000001",
          spec: { status: "verified" },
        }),
      );
      const spec = { port: 1, customDomain: "example.test", prefixUrl: "app" };
      const first = await make(previews, "first", spec);
      assert.equal(first.spec.url, `http://app.example.test:${new URL(url()).port}`);
      const body = { metadata: { name: "second" }, spec };
      assert.equal((await call("POST", previews, { body })).status, 409);
      const second = await call("POST", `${previews}?force=true`, { body });
      assert.equal(second.status, 200);
      assert.equal(second.body.spec.url, `http://app.example.test:${new URL(url()).port}`);
      const left = await call("GET", `${previews}/first`);
      assert.match(left.body.spec.url.slice(url().length), /^\/main\/previews\/[0-9a-f]{32}$/);
      assert.equal((await store().claims.holderOf("host", "app.example.test"))?.uid, second.body.metadata.uid);
    });

    test("an expired preview is gone, with its tokens, and its name is free", async () => {
      const made = await make(previews, "short", { port: 1, ttl: "1m" });
      await make(`${previews}/short/tokens`, "t");
      nowMs += 61_000;
      assert.equal((await call("GET", `${previews}/short`)).status, 404);
      assert.equal((await call("GET", `${previews}/short/tokens`)).status, 404);
      const names = (await call("GET", previews)).body.map((one: { metadata: { name: string } }) => one.metadata.name);
      assert.ok(!names.includes("short"));
      const again = await make(previews, "short", { port: 1 });
      assert.notEqual(again.metadata.uid, made.metadata.uid);
    });

    test("what is over is removed in time, with what is in it", async () => {
      const made = await make(previews, "swept", { port: 1, ttl: "1m", prefixUrl: "swept" });
      const token = await make(`${previews}/swept/tokens`, "t");
      nowMs += 61_000;
      await removeOver({ store: store(), clock }, new AbortController().signal);
      for (const { uid } of [made.metadata, token.metadata])
        assert.equal(await store().resources.getByUid("main", uid), null);
      assert.equal(await store().claims.holderOf("preview-prefix", "main/swept"), null);
      assert.equal((await call("GET", `${previews}/web`)).status, 200);
    });

    test("tokens: the value is made by the platform, listed, and sealed at rest", async () => {
      await make(previews, "private", { port: 443 });
      const tokens = `${previews}/private/tokens`;
      const made = await make(tokens, "token-1", { expiresAt: inHours(12), token: "chosen" });
      assert.match(made.spec.token, /^[\w-]{43}$/);
      assert.deepEqual(
        [made.spec.expired, made.metadata.previewName, made.metadata.resourceName],
        [false, "private", "box"],
      );
      const twin = await make(tokens, "token-1");
      assert.notEqual(twin.spec.token, made.spec.token);
      const listed = (await call("GET", tokens)).body.map((one: { spec: { token: string } }) => one.spec.token);
      assert.deepEqual(new Set(listed), new Set([made.spec.token, twin.spec.token]));

      const preview = (await call("GET", `${previews}/private`)).body.metadata.uid;
      const scope = { workspace: "main", kind: "previewtoken", parent: preview };
      const found = await store().resources.get(scope, previewTokenSlot(made.spec.token));
      assert.equal(found?.uid, made.metadata.uid, "whoever checks a token finds it by its value");
      assert.doesNotMatch(JSON.stringify(found), new RegExp(made.spec.token));
      nowMs += 13 * HOUR_MS;
      const expired = (await call("GET", tokens)).body.find(
        (one: { metadata: { uid: string } }) => one.metadata.uid === made.metadata.uid,
      );
      assert.equal(expired.spec.expired, true);
    });

    test("tokens are revoked by value or by name", async () => {
      await make(previews, "revoked", { port: 1 });
      const tokens = `${previews}/revoked/tokens`;
      const [a] = [await make(tokens, "same"), await make(tokens, "same"), await make(tokens, "third")];
      assert.equal((await call("DELETE", `${tokens}/${encodeURIComponent(a.spec.token)}`)).status, 200);
      assert.equal((await call("GET", tokens)).body.length, 2);
      await make(tokens, "same");
      const byName = await call("DELETE", `${tokens}/same`);
      assert.equal(byName.body.message, "2 tokens are revoked.");
      assert.equal((await call("GET", tokens)).body.length, 1);
      assert.equal((await call("DELETE", `${tokens}/same`)).status, 404);
    });

    test("a sandbox takes its previews, tokens and schedules with it", async () => {
      await make("/sandboxes", "doomed");
      await make("/sandboxes/doomed/previews", "p", { port: 1, prefixUrl: "doomed" });
      await make("/sandboxes/doomed/previews/p/tokens", "t");
      await call("DELETE", "/sandboxes/doomed");
      assert.equal(await store().claims.holderOf("preview-prefix", "doomed-main"), null);
      await make("/sandboxes", "doomed");
      assert.deepEqual((await call("GET", "/sandboxes/doomed/previews")).body, []);
    });
  },
  { clock },
);
