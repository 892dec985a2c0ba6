/** What a console asks for beside the resources: the overview, changes as they happen, search over all kinds. */
import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { ServerEvent } from "../../src/contract/event-stream.ts";
import { logFollow } from "../../src/kinds/log/operations.ts";
import { watchChanges } from "../../src/kinds/watch/operations.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { openLogStore } from "../../src/node/logs/log-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { LogPages } from "../answers/body.ts";
import { testDatabases } from "../databases.ts";
import { type EventsAsked, openEvents } from "../events.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { draftOf } from "../store.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`console API on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let accountId: string;
    let aheadMs = 0;
    const call: TestPlatform["call"] = (...args) => platform.call(...args);
    const drive = (name: string, workspace = "main", labels = {}) =>
      call("POST", "/drives", { workspace, body: { metadata: { name, labels }, spec: { size: 1 } } });

    before(async () => {
      platform = await startTestPlatform({
        ...(await database.migrated()),
        clock: { now: () => Date.now() + aheadMs },
      });
      store = platform.app.store;
      accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
      await makeAccount(store, "elsewhere");
    });
    after(() => platform.stop());

    test("the overview counts by kind and status and tells why something failed", async () => {
      const uids: string[] = [];
      for (const name of ["first", "second", "third"]) {
        uids.push((await store.resources.create(draftOf("model", name))).resource.uid);
      }
      const fail = (uid: string, message: string) => {
        aheadMs += 1000;
        return store.resources.update("main", uid, () => ({ status: "FAILED", event: { type: "failed", message } }));
      };
      await fail(uids[1] ?? "", "The key is wrong. It said: secret output");
      await fail(uids[0] ?? "", "No room.");
      await drive("kept");
      await store.resources.delete("main", uids[2] ?? "");

      const { body } = await call("GET", "/overview");
      const kindOf = (kind: string) => body.kinds.find((one: { kind: string }) => one.kind === kind);
      assert.deepEqual(kindOf("model").statuses, { FAILED: 2 });
      assert.equal(kindOf("drive").total, 1);
      assert.equal(kindOf("sandbox").total, 0);
      assert.deepEqual(
        body.failures.map(({ name, reason }: { name: string; reason: string }) => [name, reason]),
        [
          ["first", "No room."],
          ["second", "The key is wrong. It said: secret output"],
        ],
      );
      assert.equal(typeof body.cost.today, "number");

      const narrow = await makeUser(store, accountId, "member", { main: "member" }, ["workspaces:get", "models:list"]);
      const seen = (await call("GET", "/overview", { key: narrow.key, workspace: "main" })).body;
      assert.deepEqual(
        seen.kinds.map(({ kind }: { kind: string }) => kind),
        ["model"],
      );
      assert.equal(seen.cost, undefined);
      assert.equal(seen.failures[1].reason, "The key is wrong.");
      for (const uid of uids.slice(0, 2)) await store.resources.delete("main", uid);
      assert.deepEqual((await call("GET", "/overview")).body.failures, []);
    });

    test("a server tells admins what it lacks, with the command that mends it", async () => {
      const { body: nodes } = await call("GET", "/nodes");
      const path = `/nodes/${nodes[0].id}/findings`;
      chmodSync(platform.dataDir, 0o755);
      const { status, body } = await call("GET", path);
      assert.equal(status, 200);
      const finding = body.find(({ check }) => check === "data folder");
      assert.equal(finding.state, "warning");
      assert.equal(finding.command, `chmod 700 ${platform.dataDir}`);
      assert.equal(body.find(({ check }) => check === "database").state, "ok");
      const member = await makeUser(store, accountId, "member", { main: "admin" });
      assert.equal((await call("GET", path, { key: member.key })).status, 403);
      assert.equal((await call("GET", "/nodes/nowhere/findings")).status, 404);
    });

    test("a watcher hears of its workspace and kinds, and of what it missed", async () => {
      const watch = (asked: Partial<EventsAsked> = {}) =>
        openEvents(platform.url, watchChanges, { key: platform.apiKey, query: { kinds: "drives" }, ...asked });
      await using first = watch();
      assert.equal((await first.until("ready")).event, "ready");
      await call("POST", "/vpcs", { body: { metadata: { name: "not-asked-for" }, spec: {} } });
      await makeAccount(store, "foreign");
      await store.resources.create(draftOf("drive", "foreign", { workspace: "foreign" }));
      await drive("heard");
      const made = await first.until("change");
      const { kind, name, version, uid } = made.data as Record<string, string | number>;
      assert.deepEqual([kind, name], ["drive", "heard"], JSON.stringify(made));
      assert.ok(uid && Number(version) >= 1);
      await first.close();

      await drive("missed");
      await call("DELETE", "/drives/heard");
      await using second = watch({ lastEventId: made.id });
      const told = new Map<string, unknown>();
      while (told.size < 2) {
        const { name, deleted } = (await second.until("change")).data as { name: string; deleted?: true };
        if (name === "missed" || deleted) told.set(name, deleted);
      }
      assert.deepEqual([...told].sort(), [
        ["heard", true],
        ["missed", undefined],
      ]);
      await using stranger = watch({ lastEventId: "another-server-7" });
      assert.ok((await stranger.until("reset")).id);
    });

    test("a stream ends with the rights that opened it, and tells nothing afterwards", async () => {
      const key = await makeUser(store, accountId, "member", { main: "member" }, ["workspaces:get", "drives:list"]);
      const url = platform.url;
      await using narrow = openEvents(url, watchChanges, { key: key.key });
      await narrow.until("ready");
      for (const [kinds, status] of [
        ["vpcs", 403],
        ["no-such-kind", 400],
      ] as const)
        assert.equal((await call("GET", `/watch?kinds=${kinds}`, { key: key.key, workspace: "main" })).status, status);
      assert.equal((await call("GET", "/watch", { key: key.key, workspace: "elsewhere" })).status, 403);
      await call("POST", "/vpcs", { body: { metadata: { name: "unseen" }, spec: {} } });
      await drive("seen");
      assert.equal(((await narrow.until("change")).data as { name: string }).name, "seen");

      const [{ id = "" } = {}] = await store.keys.listKeys("user", key.sub);
      await store.keys.removeKey("user", key.sub, id);
      await drive("too-late");
      const rest: ServerEvent[] = [];
      for (let event = await narrow.next(); event; event = await narrow.next()) rest.push(event);
      assert.equal(rest.at(-1)?.event, "end", JSON.stringify(rest));
      assert.ok(!JSON.stringify(rest).includes("too-late"));
    });

    test("what is inside a sandbox that is kept from a role is not told to that role", async () => {
      const member = await makeUser(store, accountId, "member", { main: "member" });
      await using watcher = openEvents(platform.url, watchChanges, { key: member.key });
      await watcher.until("ready");
      const sandbox = (name: string, roles?: string[]) =>
        store.resources.create(draftOf("sandbox", name, { spec: roles ? { access: { roles } } : {}, settled: true }));
      const [kept, open] = [(await sandbox("kept", ["admin"])).resource, (await sandbox("open")).resource];
      await store.resources.create(draftOf("preview", "hidden", { parent: kept.uid }));
      await store.resources.create(draftOf("preview", "shown", { parent: open.uid }));
      const names: string[] = [];
      while (names.at(-1) !== "shown") names.push(((await watcher.until("change")).data as { name: string }).name);
      assert.ok(names.includes("kept") && !names.includes("hidden"), names.join());
    });

    test("search finds names and labels of every kind that the caller may list", async () => {
      await drive("needle", "main");
      await drive("needle-two", "main");
      await drive("hay", "main", { holds: "a-needle" });
      await call("POST", "/vpcs", { body: { metadata: { name: "the-needle" }, spec: {} } });
      await store.resources.create(draftOf("drive", "needle", { workspace: "elsewhere" }));
      const find = async (query: string, key = platform.apiKey) => {
        const { status, body } = await call("GET", `/search?${query}`, { key, workspace: "main" });
        assert.equal(status, 200, JSON.stringify(body));
        return body.data.map(({ kind, name }: { kind: string; name: string }) => `${kind} ${name}`);
      };
      assert.deepEqual(await find("q=NEEDLE"), ["drive needle", "drive needle-two", "vpc the-needle", "drive hay"]);
      assert.deepEqual(await find("q=needle&limit=1"), ["drive needle"]);
      assert.deepEqual(await find("q=needle&kinds=vpcs"), ["vpc the-needle"]);
      const narrow = await makeUser(store, accountId, "member", { main: "member" }, ["workspaces:get", "vpcs:list"]);
      assert.deepEqual(await find("q=needle", narrow.key), ["vpc the-needle"]);
      assert.equal((await call("GET", "/search?q=x")).status, 400);
    });

    test("references tell what a resource uses and what uses it, in this workspace", async () => {
      for (const workspace of ["main", "elsewhere"])
        await store.resources.create(draftOf("volume", "shared-disk", { workspace }));
      const body = { metadata: { name: "holder" }, spec: { volumes: [{ name: "shared-disk", mountPath: "/data" }] } };
      const made = await call("POST", "/agents", { workspace: "main", body });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const ask = (query: string, key = platform.apiKey) =>
        call("GET", `/references?${query}`, { key, workspace: "main" });
      assert.deepEqual((await ask("kind=agent&name=holder")).body, {
        uses: [{ kind: "volume", name: "shared-disk" }],
        usedBy: [],
      });
      assert.deepEqual((await ask("kind=volumes&name=shared-disk")).body.usedBy, [{ kind: "agent", name: "holder" }]);
      const narrow = await makeUser(store, accountId, "member", { main: "member" }, ["workspaces:get", "volumes:list"]);
      const seen = await ask("kind=volume&name=shared-disk", narrow.key);
      assert.deepEqual(seen.body, { uses: [], usedBy: [] }, "agents may not be listed");
      assert.equal((await ask("kind=agent&name=holder", narrow.key)).status, 403);
      assert.equal((await ask("kind=image&name=registry/x", narrow.key)).status, 403);
      assert.equal((await ask("kind=volume&name=none")).status, 404);
      assert.equal((await ask("kind=nothing&name=x")).status, 400);
    });

    test("lines are told as they come, each once, from the last known one on", async () => {
      const dir = join(platform.dataDir, "logs", "lines");
      const lines = openLogStore({ dir, clock: systemClock, onError: assert.ifError });
      const tag = { workspace: "main", plural: "agents", name: "talker", uid: "u", source: "run" as const };
      const write = async (...messages: string[]) => {
        lines.append(
          tag,
          messages.map((message) => ({ message, severity: 9 })),
        );
        await lines.flush();
      };
      const follow = (more: object = {}) =>
        openEvents(platform.url, logFollow, {
          key: platform.apiKey,
          query: { resourceType: "agents", workloadIds: "talker", ...more },
        });
      try {
        await write("before");
        await using follower = follow();
        await follower.until("ready");
        await write("one", "two");
        const heard: string[] = [];
        let id = "";
        while (heard.at(-1) !== "two") {
          const event = await follower.until("lines");
          id = event.id ?? "";
          heard.push(...(event.data as { logs: { message: string }[] }).logs.map(({ message }) => message));
        }
        assert.deepEqual(heard, ["one", "two"]);
        await write("three");
        await using later = follow({ after: id });
        const { data } = await later.until("lines");
        assert.deepEqual(
          (data as { logs: { message: string }[] }).logs.map(({ message }) => message),
          ["three"],
        );
        const talker = "resourceType=agents&workloadIds=talker";
        const said = async (more: string): Promise<[string[], string]> => {
          const logs = (await call<LogPages>("GET", `/observability/logs?${talker}${more}`)).body.talker?.logs ?? [];
          return [logs.map(({ message }) => message), logs.at(-1)?.timestamp ?? ""];
        };
        const [newest, oldestShown] = await said("&limit=2");
        assert.deepEqual(newest, ["three", "two"]);
        assert.deepEqual((await said(`&before=${oldestShown}`))[0], ["one", "before"], "the next page");
        assert.deepEqual((await said(`&after=${oldestShown}`))[0], ["three"]);
        lines.append(tag, [{ message: "bad", severity: 17 }]);
        await lines.flush();
        const counted = (await call("GET", `/observability/logs/histogram?${talker}&buckets=4`)).body;
        assert.deepEqual(
          [counted.total, counted.info.length, counted.info.at(-1), counted.error.at(-1), counted.warning],
          [5, 4, 4, 1, [0, 0, 0, 0]],
        );
        const errors = (await call("GET", `/observability/logs/histogram?${talker}&severity=ERROR`)).body;
        assert.deepEqual([errors.total, errors.info.length], [1, 60]);
        // An earlier sandbox of this name may have been kept to admins.
        const former = { ...tag, plural: "sandboxes", name: "reused", uid: "former" };
        lines.append(former, [{ message: "of the earlier life", severity: 9 }]);
        await lines.flush();
        const reader = await makeUser(store, accountId, "member", { main: "member" });
        const heardBy = async (key: string, more: string): Promise<boolean> => {
          const path = `/observability/logs?resourceType=sandboxes${more}`;
          const { status, body } = await call("GET", path, { key, workspace: "main" });
          assert.equal(status, 200);
          return JSON.stringify(body).includes("of the earlier life");
        };
        const all = async (key: string) => [await heardBy(key, "&workloadIds=reused"), await heardBy(key, "")];
        assert.deepEqual(await all(reader.key), [false, false], "the sandbox is gone");
        await store.resources.create(draftOf("sandbox", "reused", {}));
        assert.deepEqual(await all(reader.key), [false, false], "the name is another's");
        const hidden = "/observability/logs/histogram?resourceType=sandboxes";
        assert.equal((await call("GET", hidden, { key: reader.key, workspace: "main" })).body.total, 0);
        assert.deepEqual(await all(platform.apiKey), [true, true]);
      } finally {
        await lines.stop();
      }
      await store.resources.create(draftOf("sandbox", "silent", { spec: { access: { roles: ["admin"] } } }));
      const path = "/observability/logs/follow?resourceType=sandboxes&workloadIds=silent";
      const member = await makeUser(store, accountId, "member", { main: "member" });
      assert.equal((await call("GET", path, { key: member.key, workspace: "main" })).status, 403);
    });
  });
}
