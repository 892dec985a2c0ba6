/** Host names that two tenants could both read as theirs: each leads to one of them, for ever. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, test } from "node:test";
import { request } from "undici";
import { onEachDatabase } from "../each-platform.ts";
import { makeAccount, makeUser } from "../identities.ts";

const DOMAIN = "berth.test";

await onEachDatabase(
  "host names",
  ({ call, make, store, url }) => {
    /** Of another account than `main`, and its name ends in that of `main`. */
    let evil: string;
    let neighbour: string;

    before(async () => {
      const { id } = await makeAccount(store(), "evil-main");
      evil = (await makeUser(store(), id, "admin")).key;
      const { id: other } = await makeAccount(store(), "x-agent-y");
      neighbour = (await makeUser(store(), other, "admin")).key;
    });

    const as = (key: string, workspace: string) => ({
      async make(path: string, name: string, spec: object = {}) {
        const made = await call("POST", path, { key, workspace, body: { metadata: { name }, spec } });
        assert.equal(made.status, 200, JSON.stringify(made.body));
        return made.body;
      },
      call: (method: string, path: string, body?: unknown) =>
        call(method, path, { key, workspace, ...(body === undefined ? {} : { body }) }),
    });

    /** A request as it arrives once DNS led it here. */
    const visit = async (address: string, key?: string) => {
      const { host, pathname } = new URL(address);
      const answer = await request(`${url()}${pathname}`, {
        headers: { host, ...(key === undefined ? {} : { "x-service-authorization": `Bearer ${key}` }) },
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, uid: /"uid":"([^"]+)"/.exec(text)?.[1], text };
    };
    const OWNER = "test-admin-key-0123456789";
    const labelOf = (address: string): string => new URL(address).hostname.split(".")[0] ?? "";

    test("the later of two sandboxes whose labels meet takes nothing of the earlier one", async () => {
      const mine = await make("/sandboxes", "api-evil");
      const address = mine.metadata.url;
      assert.equal(labelOf(address), "sbx-api-evil-main");
      assert.equal((await visit(`${address}/x`, OWNER)).uid, mine.metadata.uid);

      const theirs = await as(evil, "evil-main").make("/sandboxes", "api");
      assert.equal((await visit(`${address}/x`, OWNER)).uid, mine.metadata.uid);
      assert.equal((await visit(`${address}/x`, evil)).status, 403);
      assert.notEqual(labelOf(theirs.metadata.url), labelOf(address));
      assert.equal((await visit(`${theirs.metadata.url}/x`, evil)).uid, theirs.metadata.uid);
      assert.equal((await visit(`${theirs.metadata.url}/x`, OWNER)).status, 403);
    });

    test("an address comes back with its name, and a freed one passes to nobody else", async () => {
      const them = as(evil, "evil-main");
      const first = (await call("GET", "/sandboxes/api-evil")).body.metadata;
      const second = (await them.call("GET", "/sandboxes/api")).body.metadata;
      assert.equal((await call("DELETE", "/sandboxes/api-evil")).status, 200);
      assert.equal((await them.call("DELETE", "/sandboxes/api")).status, 200);
      const theirs = await them.make("/sandboxes", "api");
      assert.equal(theirs.metadata.url, second.url);
      assert.equal((await visit(`${first.url}/x`, evil)).status, 404);
      const again = await make("/sandboxes", "api-evil");
      assert.equal(again.metadata.url, first.url);
      assert.equal((await visit(`${first.url}/x`, OWNER)).uid, again.metadata.uid);
      assert.equal((await visit(`${second.url}/x`, evil)).uid, theirs.metadata.uid);
    });

    test("a workspace that another account makes under a former name gets none of its addresses", async () => {
      const { id } = await makeAccount(store(), "bygone");
      const former = (await makeUser(store(), id, "admin")).key;
      const application = { image: "service/base-image:latest", command: ["true"] };
      const old = await as(former, "bygone").make("/applications", "shop", application);
      const box = await as(former, "bygone").make("/sandboxes", "box");
      const preview = await as(former, "bygone").make("/sandboxes/box/previews", "web", { port: 443, public: true });
      assert.equal((await visit(preview.spec.url)).uid, box.metadata.uid);
      const gone = await call("DELETE", "/workspaces/bygone", { key: former });
      assert.equal(gone.status, 200, JSON.stringify(gone.body));
      await untilGone("bygone");

      const { id: other } = await makeAccount(store(), "bygone");
      const heir = as((await makeUser(store(), other, "admin")).key, "bygone");
      const shop = await heir.make("/applications", "shop", application);
      assert.notEqual(labelOf(shop.metadata.url), labelOf(old.metadata.url));
      assert.equal((await visit(old.metadata.url)).status, 404);
      const heirBox = await heir.make("/sandboxes", "box");
      assert.notEqual(labelOf(heirBox.metadata.url), labelOf(box.metadata.url));
      const web = await heir.make("/sandboxes/box/previews", "web", { port: 443, public: true });
      assert.notEqual(web.spec.url, preview.spec.url);
      assert.equal((await visit(preview.spec.url)).status, 404);
      assert.equal((await visit(web.spec.url)).uid, heirBox.metadata.uid);
    });

    test("a preview that is deleted and made again has the same address, also after its sandbox was", async () => {
      await make("/sandboxes", "stage");
      const made = await make("/sandboxes/stage/previews", "web", { port: 443, public: true });
      await call("DELETE", "/sandboxes/stage/previews/web");
      assert.equal((await visit(made.spec.url)).status, 404);
      const again = await make("/sandboxes/stage/previews", "web", { port: 443, public: true });
      assert.equal(again.spec.url, made.spec.url);
      await call("DELETE", "/sandboxes/stage");
      const stage = await make("/sandboxes", "stage");
      const third = await make("/sandboxes/stage/previews", "web", { port: 443, public: true });
      assert.equal(third.spec.url, made.spec.url);
      assert.equal((await visit(made.spec.url)).uid, stage.metadata.uid);
      const other = await make("/sandboxes/stage/previews", "web2", { port: 443, public: true });
      assert.notEqual(other.spec.url, made.spec.url);
    });

    test("prefixes of two workspaces that meet are two addresses, and neither keeps the other out", async () => {
      const mine = await make("/sandboxes", "pages");
      const shown = await make("/sandboxes/pages/previews", "one", { port: 443, public: true, prefixUrl: "p-evil" });
      assert.equal(labelOf(shown.spec.url), "p-evil-main");
      const them = as(evil, "evil-main");
      const theirs = await them.make("/sandboxes", "pages");
      const spec = { port: 443, public: true, prefixUrl: "p" };
      const other = await them.make("/sandboxes/pages/previews", "one", spec);
      assert.match(labelOf(other.spec.url), /^p-evil-main-[0-9a-f]+$/);
      assert.equal((await visit(shown.spec.url)).uid, mine.metadata.uid);
      assert.equal((await visit(other.spec.url)).uid, theirs.metadata.uid);
      await call("DELETE", "/sandboxes/pages/previews/one");
      await them.call("DELETE", "/sandboxes/pages/previews/one");
      assert.equal((await them.make("/sandboxes/pages/previews", "one", spec)).spec.url, other.spec.url);
      assert.equal((await visit(shown.spec.url)).status, 404);
    });

    test("a prefix that is given up leads nowhere, until one of the same workspace takes it", async () => {
      const mine = await make("/sandboxes", "shift");
      const spec = { port: 443, public: true };
      const made = await make("/sandboxes/shift/previews", "a", { ...spec, prefixUrl: "shift" });
      const plain = (await call("PUT", "/sandboxes/shift/previews/a", { body: { ...made, spec } })).body;
      assert.notEqual(plain.spec.url, made.spec.url);
      assert.equal((await visit(made.spec.url)).status, 404);
      assert.equal((await visit(plain.spec.url)).uid, mine.metadata.uid);
      const next = await make("/sandboxes/shift/previews", "b", { ...spec, prefixUrl: "shift" });
      assert.equal(next.spec.url, made.spec.url);
      assert.equal((await visit(made.spec.url)).uid, mine.metadata.uid);
    });

    test("no prefix spells the address of another preview", async () => {
      await make("/sandboxes", "plain");
      const made = await make("/sandboxes/plain/previews", "web", { port: 443, public: true });
      for (const word of new Set([made.metadata.uid as string, labelOf(made.spec.url)])) {
        const at = word.lastIndexOf("-");
        if (at < 0) continue; // one word without a hyphen is no prefix with a workspace behind it
        const { id } = await makeAccount(store(), word.slice(at + 1));
        const thief = as((await makeUser(store(), id, "admin")).key, word.slice(at + 1));
        const box = await thief.make("/sandboxes", "box");
        const spec = { port: 443, public: true, prefixUrl: word.slice(0, at) };
        const taken = await thief.make("/sandboxes/box/previews", "web", spec);
        assert.equal((await visit(taken.spec.url)).uid, box.metadata.uid);
      }
      const plain = (await call("GET", "/sandboxes/plain")).body;
      assert.equal((await visit(made.spec.url)).uid, plain.metadata.uid);
    });

    test("names inside the platform that have one hash lead to the earlier workload", async () => {
      const { id } = await makeAccount(store(), "x");
      const victim = (await makeUser(store(), id, "admin")).key;
      const agent = { runtime: { image: "service/base-image:latest" } };
      await as(victim, "x").make("/agents", "y-agent-z", agent);
      const hash = createHash("md5").update("x-agent-y-agent-z").digest("hex");
      /** Nothing answers there; who is refused for want of rights shows whose it is. */
      const owners = async (word: string) => {
        const address = `http://bl-prod-${word}.run.localhost/`;
        return Promise.all([victim, neighbour].map(async (key) => (await visit(address, key)).status !== 403));
      };
      assert.deepEqual(await owners(hash), [true, false]);
      await as(neighbour, "x-agent-y").make("/agents", "z", agent);
      await owners("0".repeat(32)); // one that nobody has makes a server look again
      assert.deepEqual(await owners(hash), [true, false]);
      const own = (await store().heldWords.wordsOf("internal", "x-agent-y", "agent", ["z"])).get("z") ?? "";
      assert.deepEqual(await owners(own), [false, true]);
    });

    async function untilGone(workspace: string): Promise<void> {
      const giveUp = Date.now() + 60_000;
      while (
        await store()
          .database.read.selectFrom("workspaces")
          .select("id")
          .where("name", "=", workspace)
          .executeTakeFirst()
      ) {
        assert.ok(Date.now() < giveUp, "the workspace is gone within a minute");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  },
  { config: { domain: DOMAIN } },
);
