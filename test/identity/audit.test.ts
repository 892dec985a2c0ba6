/** The audit log: what is in it, who may read it, and that nobody can change it unseen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { pruneAudit } from "../../src/auth/audit-retention.ts";
import { type Clock, DAY_MS } from "../../src/lib/time/clock.ts";
import { runBerth } from "../berth-process.ts";
import { onEachDatabase, type Suite } from "../each-platform.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { TEST_KEY } from "../platform.ts";

let aheadMs = 0;
const clock: Clock = { now: () => Date.now() + aheadMs };

function auditSuite(suite: Suite): void {
  const { call } = suite;
  const lines = async (query = "") => (await call("GET", `/audit?${query}`)).body.data;

  test("has a line for every change and none for reading", async () => {
    await call("POST", "/drives", {
      body: { metadata: { name: "logged" }, spec: {} },
      headers: { "x-request-id": "mine-1" },
    });
    await call("GET", "/drives/logged");
    await call("DELETE", "/drives/logged");
    await call("DELETE", "/drives/logged-not");
    const [missing, removed, made] = await lines("limit=3");
    assert.deepEqual([made.action, made.target, made.outcome, made.status], ["driveCreate", "logged", "ok", 200]);
    assert.equal(made.requestId, "mine-1");
    assert.equal(made.workspace, "main");
    assert.equal(made.actor.name, "admin@berth.local");
    assert.match(made.sourceAddress, /127\.0\.0\.1/);
    assert.deepEqual([removed.action, removed.outcome], ["driveDelete", "ok"]);
    assert.deepEqual([missing.outcome, missing.status], ["failed", 404]);
  });

  test("tells of those who were refused", async () => {
    const [account] = await suite.store().people.listAccountsAcrossUsers();
    const member = await makeUser(suite.store(), account?.id ?? "", "member", { main: "member" });
    const body = { name: "nope" };
    const denied = await call("POST", "/service_accounts", { key: member.key, workspace: "main", body });
    assert.equal(denied.status, 403);
    const page = await call("GET", `/accounts/${account?.id}/audit?actor=${member.sub}&outcome=denied`);
    assert.deepEqual(
      page.body.data.map(({ action }: { action: string }) => action),
      ["serviceAccountCreate"],
    );
  });

  test("never holds a secret", async () => {
    const made = await call("POST", "/service_accounts", { body: { name: "silent" } });
    const key = await call("POST", "/api_keys", { body: { name: "k" } });
    await call("PUT", "/users/me/password", { body: { newPassword: "a secret of some length" } });
    await call("POST", "/agents", {
      body: { metadata: { name: "hush" }, spec: { runtime: { envs: [{ name: "A", value: "s3cr3t", secret: true }] } } },
    });
    const stored = await suite.store().database.read.selectFrom("audit_log").select("entry").execute();
    const all = JSON.stringify(stored);
    for (const secret of [made.body.client_secret, key.body.apiKey, "a secret of some length", "s3cr3t"])
      assert.ok(typeof secret === "string" && !all.includes(secret));
  });

  test("is filtered and read page by page", async () => {
    for (const name of ["p1", "p2", "p3"]) await suite.make("/drives", name);
    const first = (await call("GET", "/audit?action=driveCreate&limit=2")).body;
    assert.deepEqual(
      first.data.map(({ target }: { target: string }) => target),
      ["p3", "p2"],
    );
    assert.equal(first.meta.hasMore, true);
    const [next] = await lines(`action=driveCreate&limit=1&cursor=${first.meta.nextCursor}`);
    assert.equal(next.target, "p1");
    assert.deepEqual(await lines("endTime=2001-01-01T00:00:00Z"), []);
    for (const query of ["outcome=maybe", "startTime=soon", "limit=0", "cursor=x"])
      assert.equal((await call("GET", `/audit?${query}`)).status, 400, query);
  });

  test("shows a tenant nothing of another", async () => {
    const other = await makeAccount(suite.store(), "elsewhere");
    const admin = await makeUser(suite.store(), other.id, "admin", { elsewhere: "admin" });
    const theirs = await call("GET", "/audit", { key: admin.key });
    assert.deepEqual([theirs.status, theirs.body.data], [200, []]);
    const [account] = await suite.store().people.listAccountsAcrossUsers();
    assert.equal((await call("GET", `/accounts/${account?.id}/audit`, { key: admin.key })).status, 403);
  });

  test("keeps its chain when many write at once", async () => {
    await Promise.all(Array.from({ length: 30 }, (_, n) => suite.make("/drives", `many-${n}`)));
    const { body } = await call("GET", "/audit/verify");
    assert.equal(body.intact, true, JSON.stringify(body));
    assert.ok(body.lines >= 30 && Number(body.lastId) === Number(body.lines));
  });

  test("has a line for every look at a secret", async () => {
    await suite.make("/agents", "peeked", { runtime: { envs: [{ name: "A", value: "x", secret: true }] } });
    const [account] = await suite.store().people.listAccountsAcrossUsers();
    const member = await makeUser(suite.store(), account?.id ?? "", "member", { main: "member" });
    assert.equal((await call("GET", "/agents/peeked?show_secrets=true")).status, 200);
    assert.equal((await call("GET", "/agents/peeked?show_secrets=false")).status, 200);
    assert.equal((await call("GET", "/agents/peeked?show_secrets=yes", { key: member.key })).status, 403);
    const seen = await lines("action=agentGetSecrets");
    assert.deepEqual(
      seen.map(({ target, outcome }: { target: string; outcome: string }) => [target, outcome]),
      [
        ["peeked", "denied"],
        ["peeked", "ok"],
      ],
    );
  });

  test("is exported and checked from the command line", async () => {
    const env = { BERTH_URL: suite.url(), BERTH_API_KEY: TEST_KEY, BERTH_WORKSPACE: "main" };
    const exported = await runBerth(["audit", "export", "--action", "driveCreate"], { env });
    assert.equal(exported.code, 0, exported.stderr);
    const rows = exported.stdout.trim().split("\n");
    assert.ok(rows.length >= 33 && rows.every((row) => JSON.parse(row).action === "driveCreate"));
    const shown = await runBerth(["audit", "list", "--action", "driveCreate", "--limit", "2"], { env });
    assert.deepEqual(
      shown.stdout.match(/admin@berth\.local +driveCreate +many-\d+ +main +ok/g)?.length,
      2,
      shown.stdout,
    );
    const verified = await runBerth(["audit", "verify"], { env });
    assert.equal(verified.code, 0, verified.stderr);
    const [, last = ""] = /last: (\d+) /.exec(verified.stdout) ?? [];
    assert.equal(Number(last), (await call("GET", "/audit/verify")).body.lastId);
  });

  test("lets old lines go, says so, and is still whole", async () => {
    const { audit } = suite.store();
    const prune = pruneAudit(suite.store(), clock, 30);
    const before = await audit.check();
    await prune(AbortSignal.timeout(60_000));
    assert.equal((await audit.check()).firstSeq, 1, "nothing is old yet");
    aheadMs += 31 * DAY_MS;
    await suite.make("/drives", "young");
    await prune(AbortSignal.timeout(60_000));
    const after = await audit.check();
    assert.equal(after.intact, true, JSON.stringify(after));
    assert.equal(after.firstSeq, before.lastSeq + 1);
    const [account] = await suite.store().people.listAccountsAcrossUsers();
    const { body } = await call("GET", `/accounts/${account?.id}/audit`);
    assert.deepEqual(
      body.data.map(({ action }: { action: string }) => action),
      ["auditPrune", "driveCreate"],
    );
  });

  test("cannot be changed, and shows it when somebody did so behind its back", async () => {
    const { database } = suite.store();
    const run = (text: string) => database.write(async ({ queries }) => void (await sql.raw(text).execute(queries)));
    for (const name of ["t1", "t2", "t3", "t4"]) await suite.make("/drives", name);
    const { firstSeq: first, lastHash } = await suite.store().audit.check();
    await assert.rejects(run(`UPDATE audit_log SET actor = 'x' WHERE seq = ${first + 2}`), /append-only/);
    await assert.rejects(run(`DELETE FROM audit_log WHERE seq = ${first + 2}`), /append-only/);
    for (const trigger of database.dialect === "postgres"
      ? ["ALTER TABLE audit_log DISABLE TRIGGER ALL"]
      : ["DROP TRIGGER audit_log_update", "DROP TRIGGER audit_log_delete"])
      await run(trigger);
    const check = async () => (await call("GET", "/audit/verify")).body;
    await run(`UPDATE audit_log SET actor = 'x' WHERE seq = ${first + 2}`);
    assert.deepEqual([(await check()).intact, (await check()).brokenAt], [false, first + 2]);
    await run(`DELETE FROM audit_log WHERE seq = ${first + 1}`);
    assert.equal((await check()).brokenAt, first + 1);
    // Whoever moves the beginning over what they removed cannot seal it.
    await run(`UPDATE audit_base SET seq = ${first + 5}, hash = '${lastHash}'`);
    assert.equal((await check()).intact, false);
    const env = { BERTH_URL: suite.url(), BERTH_API_KEY: TEST_KEY, BERTH_WORKSPACE: "main" };
    assert.equal((await runBerth(["audit", "verify"], { env })).code, 1);
  });
}

await onEachDatabase("the audit log", auditSuite, { clock, on: "all" });
