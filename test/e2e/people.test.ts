import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import type { Store } from "../../src/store/store.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeServiceAccount, makeUser } from "../identities.ts";
import { Browser } from "../identity/browser.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

interface Listed {
  email: string;
  role: string;
  accepted: boolean;
  expired: boolean;
}

for (const database of databases.aboveStore) {
  describe(`people on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let store: Store;
    let accountId: string;
    let aheadMs = 0;
    const call: TestPlatform["call"] = (...args) => platform.call(...args);
    /** Somebody of another account, who has shown that the address is theirs. */
    const person = async (isVerified = true) => {
      const account = await store.write((tx) => store.people.createAccount(tx, "own"));
      const identity = await makeUser(store, account.id, "member", {}, null, null, isVerified);
      return { ...identity, email: (await store.people.getUser(identity.sub))?.email ?? "" };
    };
    const invite = (email: string, rest: object = {}) =>
      call("POST", "/users", { body: { email, ...rest }, workspace: "main" });
    const users = async (): Promise<Listed[]> => (await call<Listed[]>("GET", "/users", { workspace: "main" })).body;

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

    test("an invited person accepts and becomes a member", async () => {
      const anna = await person();
      const invited = await invite(anna.email.toUpperCase());
      assert.equal(invited.status, 200, JSON.stringify(invited.body));
      assert.equal(invited.body.role, "member");
      assert.equal(invited.body.workspace, "main");
      assert.ok((await users()).some((user) => user.email === anna.email && !user.accepted && !user.expired));

      const open = await call("GET", "/invitations", { key: anna.key });
      assert.equal(open.body.length, 1);
      assert.equal(open.body[0].workspace.name, "main");
      assert.equal(open.body[0].invitedBy.email, "admin@berth.local");
      assert.equal((await call("GET", "/drives", { key: anna.key, workspace: "main" })).status, 403);

      const path = `/invitations/${open.body[0].invitationId}/accept`;
      const accepted = await call("POST", path, { key: anna.key });
      assert.equal(accepted.body.email, anna.email);
      assert.equal(accepted.body.workspace.name, "main");
      assert.equal((await call("GET", "/drives", { key: anna.key, workspace: "main" })).status, 200);
      assert.equal((await call("POST", path, { key: anna.key })).status, 404);
      assert.equal((await invite(anna.email)).status, 409);
      assert.ok((await users()).some((user) => user.email === anna.email && user.accepted));
    });

    test("a person reads who they are, and only credentials that may list workspaces see all of them", async () => {
      await makeAccount(store, "beside");
      const anna = await makeUser(store, accountId, "member", { main: "member", beside: "admin" });
      const { body } = await call("GET", "/users/me", { key: anna.key });
      assert.deepEqual(
        body.workspaces.map(({ name, role }: { name: string; role: string }) => [name, role]),
        [
          ["beside", "admin"],
          ["main", "member"],
        ],
      );
      assert.equal(body.sub, anna.sub);
      assert.equal(body.type, "user");
      assert.equal(body.workspace, null);
      assert.match(body.refused.driveList ?? "", /needs a workspace/);
      const there = await call("GET", "/users/me?workspace=beside", { key: anna.key });
      assert.equal(there.body.workspace, "beside");
      assert.equal(there.body.refused.userInvite, undefined);
      const away = await call("GET", "/users/me?workspace=elsewhere", { key: anna.key });
      assert.equal(away.body.workspace, null);
      assert.match(away.body.refused.driveList ?? "", /no access/);

      const narrow = await makeUser(store, accountId, "member", { main: "member", beside: "admin" }, ["drives:list"]);
      assert.deepEqual((await call("GET", "/users/me", { key: narrow.key })).body.workspaces, []);
      const here = await call("GET", "/users/me", { key: narrow.key, workspace: "main" });
      assert.deepEqual(here.body.scopes, ["drives:list"]);
      assert.deepEqual(
        here.body.workspaces.map(({ name }: { name: string }) => name),
        ["main"],
      );
      assert.match(here.body.refused.driveCreate ?? "", /drives:create/);
      assert.equal(here.body.refused.driveList, undefined);
    });

    test("an invitation is only for the one who was invited", async () => {
      const [bert, eve] = [await person(), await person()];
      const { body } = await invite(bert.email, { role: "admin" });
      assert.deepEqual((await call("GET", "/invitations", { key: eve.key })).body, []);
      for (const verb of ["accept", "decline"])
        assert.equal((await call("POST", `/invitations/${body.invitationId}/${verb}`, { key: eve.key })).status, 404);
      const robot = await makeServiceAccount(store, "main");
      assert.equal((await call("GET", "/invitations", { key: robot.key })).status, 403);
      const declined = await call("POST", `/invitations/${body.invitationId}/decline`, { key: bert.key });
      assert.equal(declined.status, 204);
      assert.deepEqual((await call("GET", "/invitations", { key: bert.key })).body, []);
    });

    test("the link of an invitation ends when the role is raised, and whoever raised it gets another", async () => {
      const email = "raised@example.test";
      const { invitationId } = (await invite(email)).body;
      const change = async (role: string) =>
        (await call("PUT", `/users/${email}`, { body: { role }, workspace: "main" })).body;
      assert.equal((await change("member")).url, undefined);
      assert.ok(await store.people.getInvitation(invitationId));
      const raised = await change("admin");
      assert.match(raised.url, /\/oauth\/link#/);
      assert.equal(await store.people.getInvitation(invitationId), null);
      assert.equal(await store.people.acceptAsNewPerson(invitationId, email, "hash"), null);
      assert.equal((await change("member")).url, undefined);
      await call("DELETE", `/users/${email}`, { workspace: "main" });
    });

    test("an invitation ends with the key that made it", async () => {
      const endsAt = Date.now() + aheadMs + DAY_MS;
      const { key } = await makeUser(store, accountId, "member", { main: "admin" }, null, endsAt);
      const email = "brief@example.test";
      const { body } = await call("POST", "/users", { body: { email }, workspace: "main", key });
      assert.equal(body.expiresAt, new Date(endsAt).toISOString());
      await call("DELETE", `/users/${email}`, { workspace: "main" });
    });

    test("a dry run that would be none is refused", async () => {
      const email = "rehearsed@example.test";
      for (const value of ["true", "1", "yes", ""]) {
        const refused = await call("POST", `/users?dryRun=${value}`, { body: { email }, workspace: "main" });
        assert.equal(refused.status, 400, JSON.stringify(refused.body));
      }
      assert.ok(!(await users()).some((user) => user.email === email));
      const drive = { metadata: { name: "rehearsed" }, spec: {} };
      for (const value of ["yes", ""]) {
        const refused = await call("POST", `/drives?dryRun=${value}`, { body: drive, workspace: "main" });
        assert.equal(refused.status, 400, JSON.stringify(refused.body));
      }
      assert.equal((await call("GET", "/drives/rehearsed", { workspace: "main" })).status, 404);
      const meant = await call("POST", "/users?dryRun=false", { body: { email }, workspace: "main" });
      assert.equal(meant.status, 200, JSON.stringify(meant.body));
      await call("DELETE", `/users/${email}`, { workspace: "main" });
    });

    test("of two password links that are used at once, one sets the password", async () => {
      const { sub } = await makeUser(store, accountId, "member");
      const opened = async () => {
        const { body } = await call("POST", `/accounts/${accountId}/users/${sub}/password/link`);
        const browser = new Browser(platform.url);
        const entry = await browser.visit(body.url);
        return { browser, page: await browser.submit(entry, { token: body.url }) };
      };
      for (const password of ["a first long password", "a second long password"]) {
        const links = [await opened(), await opened()];
        const fields = { password, again: password };
        const used = await Promise.all(links.map(({ browser, page }) => browser.submit(page, fields)));
        assert.deepEqual(used.map(({ status }) => status).sort(), [200, 410]);
      }
    });

    /** Whoever invites an unused address can open the link, and knows the password. */
    const squatter = async (email: string) => {
      const { invitationId } = (await invite(email)).body;
      const { sub } = (await store.people.acceptAsNewPerson(invitationId, email, "hash")) ?? assert.fail();
      const owner = { ownerType: "user", owner: sub, createdBy: email } as const;
      const { secret: key } = await store.keys.createKey({
        ...owner,
        name: "",
        workspace: null,
        scopes: null,
        expiresAt: null,
      });
      assert.equal((await call("GET", "/drives", { key, workspace: "main" })).status, 200);
      return { sub, key };
    };

    test("a guest with an address that nobody has verified goes with the last workspace", async () => {
      const { sub, key } = await squatter("guest@example.test");
      assert.equal((await call("DELETE", `/users/${sub}`, { workspace: "main" })).status, 200);
      assert.equal(await store.people.getUser(sub), null);
      assert.equal((await call("GET", "/drives", { key, workspace: "main" })).status, 401);
    });

    test("an account takes over a guest of its workspaces, and the guest's password and keys end", async () => {
      const email = "chief@example.test";
      const { sub, key } = await squatter(email);
      const added = await call("POST", `/accounts/${accountId}/users`, { body: { email } });
      assert.equal(added.status, 200, JSON.stringify(added.body));
      assert.equal(added.body.sub, sub);
      assert.equal((await store.people.getUser(sub))?.password_hash, null);
      assert.equal((await call("GET", "/drives", { key, workspace: "main" })).status, 401);
      assert.equal(await store.people.roleIn("main", sub), "member");
      for (const known of [await person(false), await person()])
        assert.equal(
          (await call("POST", `/accounts/${accountId}/users`, { body: { email: known.email } })).status,
          409,
        );
    });

    test("an address that somebody else's admin wrote down opens nothing", async () => {
      const mallory = await person(false);
      const { body } = await invite(mallory.email);
      assert.deepEqual((await call("GET", "/invitations", { key: mallory.key })).body, []);
      for (const verb of ["accept", "decline"])
        assert.equal(
          (await call("POST", `/invitations/${body.invitationId}/${verb}`, { key: mallory.key })).status,
          404,
        );
      const ours = await makeUser(store, accountId, "member");
      const own = await invite((await store.people.getUser(ours.sub))?.email ?? "");
      const accepted = await call("POST", `/invitations/${own.body.invitationId}/accept`, { key: ours.key });
      assert.equal(accepted.status, 200, "our own account vouches for its people");
    });

    test("an account has people: added, promoted, helped and removed by its admins, of whom one stays", async () => {
      const path = `/accounts/${accountId}/users`;
      const added = await call("POST", path, {
        body: { email: "Zoe@Example.test", sub: "chosen", email_verified: true },
      });
      assert.equal(added.status, 200, JSON.stringify(added.body));
      const { sub, ...zoe } = added.body;
      assert.notEqual(sub, "chosen");
      assert.deepEqual([zoe.email, zoe.role, zoe.email_verified], ["zoe@example.test", "member", false]);
      assert.equal((await call("POST", path, { body: { email: "zoe@example.test" } })).status, 409);
      assert.ok((await call("GET", path)).body.some((one: { sub: string }) => one.sub === sub));
      assert.equal((await call("PUT", `${path}/${sub}/password`, { body: { newPassword: "short" } })).status, 400);
      const reset = await call("PUT", `${path}/zoe@example.test/password`, { body: { newPassword: "long enough!!" } });
      assert.equal(reset.status, 200, JSON.stringify(reset.body));
      assert.equal((await call("PUT", `${path}/${sub}`, { body: { role: "admin" } })).body.role, "admin");
      const { key } = await store.keys
        .createKey({
          name: "",
          ownerType: "user",
          owner: sub,
          workspace: null,
          scopes: null,
          createdBy: "",
          expiresAt: null,
        })
        .then(({ secret }) => ({ key: secret }));
      assert.equal((await call("GET", "/users", { key, workspace: "main" })).status, 200);
      assert.equal((await call("DELETE", `${path}/${sub}`)).status, 200);
      assert.equal((await call("GET", "/users", { key, workspace: "main" })).status, 401, "the key is gone with her");
      assert.equal((await call("DELETE", `${path}/${sub}`)).status, 404);
    });

    test("an account keeps an admin, also when two go at once", async () => {
      const { id } = await makeAccount(store, "duo");
      const [one, two] = [await makeUser(store, id, "admin"), await makeUser(store, id, "admin")];
      const path = `/accounts/${id}/users`;
      const answers = await Promise.all([
        call("DELETE", `${path}/${one.sub}`, { key: one.key }),
        call("PUT", `${path}/${two.sub}`, { key: two.key, body: { role: "member" } }),
      ]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
    });

    test("a password is not set for somebody who belongs to others as well", async () => {
      await makeAccount(store, "abroad");
      const shared = await makeUser(store, accountId, "member", { abroad: "member" });
      const path = `/accounts/${accountId}/users/${shared.sub}/password`;
      assert.equal((await call("PUT", path, { body: { newPassword: "long enough!!" } })).status, 403);
      const stranger = await person();
      const other = `/accounts/${accountId}/users/${stranger.sub}/password`;
      assert.equal((await call("PUT", other, { body: { newPassword: "long enough!!" } })).status, 404);
    });

    test("an expired invitation is gone, and can be renewed", async () => {
      const cleo = await person();
      const { body } = await invite(cleo.email);
      aheadMs += 8 * DAY_MS;
      const late = await call("POST", `/invitations/${body.invitationId}/accept`, { key: cleo.key });
      assert.equal(late.status, 410);
      assert.ok((await users()).some((user) => user.email === cleo.email && user.expired));
      const renewed = await invite(cleo.email);
      const accepted = await call("POST", `/invitations/${renewed.body.invitationId}/accept`, { key: cleo.key });
      assert.equal(accepted.status, 200);
    });

    test("roles change, by sub or e-mail, and an invitation can be changed and withdrawn", async () => {
      const member = await makeUser(store, accountId, "member", { main: "member" });
      const email = (await store.people.getUser(member.sub))?.email ?? "";
      const up = await call("PUT", `/users/${member.sub}`, { body: { role: "admin" }, workspace: "main" });
      assert.equal(up.body.role, "admin");
      assert.equal((await call("GET", "/users", { key: member.key, workspace: "main" })).status, 200);
      assert.equal(
        (await call("POST", "/users", { body: { email: "x@example.test" }, key: member.key, workspace: "main" }))
          .status,
        200,
      );
      const down = await call("PUT", `/users/${email}`, { body: { role: "member" }, workspace: "main" });
      assert.equal(down.body.role, "member");
      const open = await call("PUT", "/users/x@example.test", { body: { role: "admin" }, workspace: "main" });
      assert.equal(open.body.role, "admin");
      assert.equal(open.body.accepted, false);
      assert.equal((await call("DELETE", "/users/x@example.test", { workspace: "main" })).status, 200);
      assert.ok(!(await users()).some((user) => user.email === "x@example.test"));
      assert.equal((await call("DELETE", `/users/${member.sub}`, { workspace: "main" })).status, 200);
      assert.equal((await call("GET", "/drives", { key: member.key, workspace: "main" })).status, 403);
      assert.equal((await call("DELETE", `/users/${member.sub}`, { workspace: "main" })).status, 404);
    });

    test("a workspace keeps an admin, also when two leave at once", async () => {
      await call("POST", "/workspaces", { body: { name: "kept" } });
      const admin = (await call("GET", "/users", { workspace: "kept" })).body[0];
      const demoted = await call("PUT", `/users/${admin.sub}`, { body: { role: "member" }, workspace: "kept" });
      assert.equal(demoted.status, 409);
      assert.match(demoted.body.message, /only admin/);
      assert.equal((await call("DELETE", `/users/${admin.sub}`, { workspace: "kept" })).status, 409);
      const second = await makeUser(store, accountId, "member", { kept: "admin" });
      const answers = await Promise.all([
        call("DELETE", `/users/${admin.sub}`, { workspace: "kept" }),
        call("DELETE", `/users/${second.sub}`, { workspace: "kept" }),
      ]);
      assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, 409]);
    });

    test("bad input is refused by name", async () => {
      assert.match((await invite("not-an-address")).body.message, /email/);
      const role = await call("PUT", "/users/whoever", { body: { role: "owner" }, workspace: "main" });
      assert.match(role.body.message, /role/);
    });

    test("another tenant's people are out of reach", async () => {
      const stranger = await makeUser(store, accountId, "member", { elsewhere: "admin" });
      const mine = await makeUser(store, accountId, "member", { main: "member" });
      const there = { workspace: "elsewhere", key: stranger.key };
      assert.equal((await call("DELETE", `/users/${mine.sub}`, there)).status, 404);
      assert.equal((await call("PUT", `/users/${mine.sub}`, { ...there, body: { role: "admin" } })).status, 404);
      const emails = (await call("GET", "/users", there)).body.map((user: Listed) => user.email);
      assert.equal(emails.length, 1);
    });
  });
}
