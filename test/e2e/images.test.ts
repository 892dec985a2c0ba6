import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { type Identity, makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

interface Listed {
  metadata: { name: string; resourceType: string; workspace: string; sourceWorkspace?: string };
}

for (const database of databases.aboveStore) {
  describe(`images on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let owner: Identity;
    let aheadMs = 0;
    const call: TestPlatform["call"] = (method, path, options = {}) =>
      platform.call(method, path, { workspace: "main", ...options });
    const there = () => ({ key: owner.key, workspace: "elsewhere" });
    const record = (name: string, image = `ghcr.io/acme/${name}:1.0`, rest: object = {}, options = {}) =>
      call("POST", "/images", { body: { name, resourceType: "sandbox", image, ...rest }, ...options });
    const names = async (options = {}) =>
      (await call("GET", "/images", options)).body.map((image: Listed) => image.metadata.name);
    const offer = async (name: string) => {
      const answer = await call("POST", `/images/sandbox/${name}/share`, { body: { targetWorkspace: "elsewhere" } });
      assert.equal(answer.status, 202, JSON.stringify(answer.body));
      return answer.body.id as string;
    };

    before(async () => {
      platform = await startTestPlatform({
        ...(await database.migrated()),
        clock: { now: () => Date.now() + aheadMs },
      });
      store = platform.app.store;
      const other = await makeAccount(store, "elsewhere");
      owner = await makeUser(store, other.id, "admin", { elsewhere: "admin" });
      await call("POST", "/workspaces", { body: { name: "sibling" } });
    });
    after(() => platform.stop());

    test("a reference that cannot be pulled is recorded with the reason", async () => {
      const made = await record("tool", "localhost:5000/acme/tool:1.0", { dockerConfig: '{"auths":{"x":"hunter2"}}' });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.equal(made.body.build, true);
      await record("tool", "localhost:5000/acme/tool");
      const { uid } = (await store.resources.listNamed("main", "image", "tool"))[0] ?? assert.fail();
      await store.resources.waitFor(
        "main",
        uid,
        (now) => now?.events.filter(({ type }) => type === "failed").length === 2,
        {
          signal: AbortSignal.timeout(90_000),
        },
      );
      const { body } = await call("GET", "/images/sandbox/tool");
      assert.deepEqual(
        body.spec.tags.map((tag: { name: string }) => tag.name),
        ["1.0", "latest"],
      );
      assert.deepEqual([body.spec.size, body.metadata.status], [undefined, "FAILED"]);
      const said = body.metadata.events.map(({ message }: { message: string }) => message).join("\n");
      assert.match(said, /dockerConfig is not the content of a Docker config.json/);
      assert.equal((await call("GET", "/images/_/tool")).body.metadata.resourceType, "sandbox");
      assert.equal((await call("GET", "/images/agent/tool")).status, 404);
      const rows = JSON.stringify(await store.database.read.selectFrom("resources").selectAll().execute());
      assert.ok(!rows.includes("hunter2"), "registry credentials are sealed");
      assert.ok(!JSON.stringify(body).includes("hunter2"));
      await record("plain", "ghcr.io/acme/plain:1");
      const plain = (await store.resources.listNamed("main", "image", "plain"))[0] ?? assert.fail();
      const failed = await store.resources.waitFor("main", plain.uid, (now) => now?.status === "FAILED", {
        signal: AbortSignal.timeout(90_000),
      });
      const why =
        "The image ghcr.io/acme/plain:1 cannot be pulled: images from ghcr.io are not allowed on this server.";
      assert.equal(failed?.events.at(-1)?.message, why);
    });

    test("the same name for another type is another image", async () => {
      await record("twin", "acme/twin:a");
      await record("twin", "acme/twin:b", { resourceType: "agent" });
      assert.equal((await call("GET", "/images/agent/twin")).body.spec.tags[0].name, "b");
      assert.equal((await call("GET", "/images/sandbox/twin")).body.spec.tags[0].name, "a");
      await call("DELETE", "/images/agent/twin");
      assert.equal((await call("GET", "/images/sandbox/twin")).status, 200);
    });

    test("a build is refused rather than pretended", async () => {
      const build = await call("POST", "/images", { body: { name: "x", resourceType: "agent" } });
      assert.equal(build.status, 422);
      const upload = await call("POST", "/images?upload=true", {
        body: { name: "x", resourceType: "agent", image: "acme/x" },
      });
      assert.equal(upload.status, 422);
      assert.equal((await call("GET", "/images/_/x")).status, 404);
      for (const image of ["acme/UPPER", "a b", "x:", "-", "a".repeat(600), "acme/x@sha256:12"])
        assert.equal((await record("bad", image)).status, 400, image);
      assert.equal((await record("Bad_Name")).status, 400);
    });

    test("what is in use stays, tag by tag", async () => {
      await record("used", "acme/used:1");
      await record("used", "acme/used:2");
      await call("POST", "/agents", {
        body: { metadata: { name: "runner" }, spec: { runtime: { image: "sandbox/used:1" } } },
      });
      const refused = await call("DELETE", "/images/sandbox/used");
      assert.equal(refused.status, 400);
      assert.match(refused.body.message, /agent 'runner'/);
      assert.equal((await call("DELETE", "/images/sandbox/used/tags/1")).status, 400);
      const shrunk = await call("DELETE", "/images/sandbox/used/tags/2");
      assert.equal(shrunk.body.spec.tags.length, 1);
      assert.equal((await call("DELETE", "/images/sandbox/used/tags/2")).status, 404);
      await record("idle");
      const cleaned = await call("DELETE", "/images");
      assert.ok(cleaned.body.deleted >= 1);
      const left = await names();
      assert.ok(left.includes("used") && !left.includes("idle"));
      await store.resources.delete("main", (await store.resources.listNamed("main", "agent", "runner"))[0]?.uid ?? "");
      assert.equal((await call("DELETE", "/images/sandbox/used")).status, 200);
    });

    test("within an account a share is at once, whole, and cannot be passed on", async () => {
      await record("common");
      const shared = await call("POST", "/images/sandbox/common/share", { body: { targetWorkspace: "sibling" } });
      assert.equal(shared.status, 200);
      const at = { workspace: "sibling" };
      const seen = await call("GET", "/images/sandbox/common", at);
      assert.equal(seen.body.metadata.sourceWorkspace, "main");
      assert.equal(seen.body.metadata.workspace, "sibling");
      await record("common", "ghcr.io/acme/common:2.0");
      assert.equal((await call("GET", "/images/_/common", at)).body.spec.tags.length, 2, "later tags too");
      const again = await call("POST", "/images/sandbox/common/share", { body: { targetWorkspace: "sibling" } });
      assert.equal(again.status, 409);
      const onward = await call("POST", "/images/sandbox/common/share", { body: { targetWorkspace: "main" }, ...at });
      assert.equal(onward.status, 400);
      assert.equal((await call("DELETE", "/images/sandbox/common/tags/2.0", at)).status, 400);
      assert.equal((await call("DELETE", "/images/sandbox/common")).status, 400, "shared");
      assert.deepEqual(
        (await call("GET", "/images/sandbox/common/share")).body.map((one: { workspace: string; status: string }) => [
          one.workspace,
          one.status,
        ]),
        [["sibling", "active"]],
      );
      assert.equal((await call("DELETE", "/images/sandbox/common/share/sibling")).status, 200);
      assert.equal((await call("DELETE", "/images/sandbox/common/share/sibling")).status, 404);
      assert.deepEqual(await names(at), []);
    });

    test("a borrower gives an image back by deleting it", async () => {
      await record("lent");
      await call("POST", "/images/sandbox/lent/share", { body: { targetWorkspace: "sibling" } });
      assert.equal((await call("DELETE", "/images/sandbox/lent", { workspace: "sibling" })).status, 200);
      assert.equal((await call("GET", "/images/sandbox/lent", { workspace: "sibling" })).status, 404);
      assert.equal((await call("GET", "/images/sandbox/lent")).status, 200);
    });

    test("another account accepts or declines", async () => {
      await record("gift");
      const id = await offer("gift");
      const twice = await call("POST", "/images/sandbox/gift/share", { body: { targetWorkspace: "elsewhere" } });
      assert.equal(twice.status, 409);
      assert.equal((await call("GET", "/images/sandbox/gift", there())).status, 404, "not before it is accepted");
      const incoming = await call("GET", "/pending-image-shares", there());
      assert.equal(incoming.body[0].imageName, "gift");
      assert.equal(incoming.body[0].hasConflict, false);
      const outgoing = await call("GET", "/pending-image-shares?direction=outgoing");
      assert.equal(outgoing.body[0].id, id);
      assert.equal(outgoing.body[0].hasConflict, undefined, "what the other side has is not ours to know");
      assert.equal((await call("POST", `/pending-image-shares/${id}/accept`)).status, 404, "not ours to accept");

      const accepted = await call("POST", `/pending-image-shares/${id}/accept`, there());
      assert.equal(accepted.body.metadata.sourceWorkspace, "main");
      assert.deepEqual(await names(there()), ["gift"]);
      assert.equal((await call("POST", `/pending-image-shares/${id}/accept`, there())).status, 404);
      await call("DELETE", "/images/sandbox/gift/share/elsewhere");
      assert.deepEqual(await names(there()), []);

      const declined = await offer("gift");
      assert.equal((await call("POST", `/pending-image-shares/${declined}/decline`, there())).status, 204);
      assert.deepEqual((await call("GET", "/pending-image-shares", there())).body, []);
      const withdrawn = await offer("gift");
      assert.equal((await call("DELETE", "/images/sandbox/gift/share/elsewhere")).status, 200);
      assert.equal((await call("POST", `/pending-image-shares/${withdrawn}/accept`, there())).status, 404);
    });

    test("a name clash is refused unless forced, and an old offer is gone", async () => {
      await record("clash");
      await record("clash", "their/own:9", {}, there());
      const id = await offer("clash");
      assert.equal((await call("GET", "/pending-image-shares", there())).body[0].hasConflict, true);
      assert.equal((await call("POST", `/pending-image-shares/${id}/accept`, there())).status, 409);
      const forced = await call("POST", `/pending-image-shares/${id}/accept?force=true`, there());
      assert.equal(forced.status, 200, JSON.stringify(forced.body));
      const now = await call("GET", "/images/sandbox/clash", there());
      assert.equal(now.body.metadata.sourceWorkspace, "main");

      await record("late");
      const late = await offer("late");
      aheadMs += 8 * DAY_MS;
      assert.equal((await call("POST", `/pending-image-shares/${late}/accept`, there())).status, 410);
      assert.notEqual(await offer("late"), late, "an expired offer is renewed");

      await record("mine", "acme/mine:1");
      await record("mine", "acme/mine:1", {}, { workspace: "sibling" });
      const clash = await call("POST", "/images/sandbox/mine/share", { body: { targetWorkspace: "sibling" } });
      assert.equal(clash.status, 409);
    });

    test("shares need a target that exists and an admin, and end with either workspace", async () => {
      await record("odd");
      const share = (body: object, key?: string) =>
        call("POST", "/images/sandbox/odd/share", { body, ...(key ? { key } : {}) });
      assert.equal((await share({ targetWorkspace: "main" })).status, 400);
      const { accountId: targetAccountId } = (await call("GET", "/workspaces/main")).body;
      assert.equal((await share({ targetWorkspace: "no-such", targetAccountId })).status, 404);
      const accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
      const member = await makeUser(store, accountId, "member", { main: "member" });
      assert.equal((await share({ targetWorkspace: "sibling" }, member.key)).status, 403);

      await call("POST", "/workspaces", { body: { name: "short-lived" } });
      await share({ targetWorkspace: "short-lived" });
      await call("DELETE", "/workspaces/short-lived");
      assert.deepEqual((await call("GET", "/images/sandbox/odd/share")).body, []);
      assert.equal((await call("DELETE", "/images/sandbox/odd")).status, 200);
    });
  });
}
