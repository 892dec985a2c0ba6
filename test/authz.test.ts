/** The walk: every operation with no, wrong, expired, foreign and weak credentials. A new operation cannot escape it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Operation } from "../src/contract/operation.ts";
import { OPERATIONS } from "../src/kinds/index.ts";
import { type Identity, makeAccount, makeServiceAccount, makeUser } from "./identities.ts";
import { startTestPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
let accountId: string;
let foreign: { id: string; workspace: string };
const who = {} as Record<"stranger" | "expired" | "member" | "scopeless" | "robot" | "foreignRobot", Identity>;

before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  foreign = await makeAccount(store, "theirs");
  who.stranger = await makeUser(store, foreign.id, "admin", { theirs: "admin" });
  who.expired = await makeUser(store, accountId, "admin", { main: "admin" }, null, Date.now() - 1000);
  who.member = await makeUser(store, accountId, "member", { main: "member" });
  who.scopeless = await makeUser(store, accountId, "admin", { main: "admin" }, ["nothing:here"]);
  who.robot = await makeServiceAccount(store, "main");
  who.foreignRobot = await makeServiceAccount(store, "theirs", "admin");
});
after(() => platform.stop());

/** A path that names nothing that exists, in our own workspace and account. */
const pathOf = (operation: Operation): string =>
  operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === operation.workspaceParam ? "main" : name === "accountId" ? accountId : "no-such-thing",
  );

const send = (operation: Operation, key: string | null, headers: Record<string, string> = {}) =>
  platform.call(operation.method, pathOf(operation), {
    key,
    headers: { "x-service-workspace": "main", ...headers },
    ...(operation.body ? { body: {} } : {}),
  });

const guarded = OPERATIONS.filter((operation) => operation.tenancy !== "public");

describe("every operation", () => {
  for (const operation of guarded) {
    test(`${operation.id} refuses the unknown`, async () => {
      for (const key of [null, "garbage", who.expired.key]) {
        const { status, body } = await send(operation, key);
        assert.equal(status, 401, `${operation.id} with ${key === null ? "no key" : "a bad key"}`);
        assert.equal(body.code, 401);
      }
    });
  }

  for (const operation of guarded.filter(({ tenancy }) => tenancy === "workspace")) {
    test(`${operation.id} refuses other tenants`, async () => {
      // A workspace that is named as the thing itself is as invisible as any other thing of theirs.
      const expected = operation.workspaceParam ? 404 : 403;
      for (const key of [who.stranger.key, who.foreignRobot.key])
        assert.equal((await send(operation, key)).status, expected);
    });
  }

  for (const operation of guarded.filter(
    ({ tenancy, path }) => tenancy === "account" && path.includes("{accountId}"),
  )) {
    test(`${operation.id} refuses other accounts`, async () => {
      assert.equal((await send(operation, who.stranger.key)).status, 403);
    });
  }

  for (const operation of guarded.filter(({ scope }) => scope !== null)) {
    test(`${operation.id} needs its scope`, async () => {
      assert.equal((await send(operation, who.scopeless.key)).status, 403);
    });
  }

  for (const operation of guarded.filter(({ tenancy, role }) => tenancy === "workspace" && role === "admin")) {
    test(`${operation.id} needs an admin`, async () => {
      for (const key of [who.member.key, who.robot.key]) assert.equal((await send(operation, key)).status, 403);
    });
  }
});

test("a public operation is public on purpose", () => {
  const open = OPERATIONS.filter((operation) => operation.tenancy === "public")
    .map((operation) => operation.id)
    .sort();
  assert.deepEqual(open, [...PUBLIC].filter((id) => OPERATIONS.some((operation) => operation.id === id)).sort());
});

/** Adding to this list is a decision that a reviewer sees. */
const PUBLIC = ["changelogGet", "driveJwks", "jobExecutionData"];

test("only operations about the caller alone go without a scope", () => {
  const bare = OPERATIONS.filter(
    (operation) => operation.scope === null && !["public", "caller"].includes(operation.tenancy),
  );
  assert.deepEqual(
    bare.map((operation) => operation.id),
    [],
  );
});
