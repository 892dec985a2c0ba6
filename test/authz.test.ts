/** The walk: every operation with no, wrong, expired, foreign and weak credentials. A new operation cannot escape it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { generateSigningPair } from "../src/auth/oauth/access-tokens.ts";
import type { Operation } from "../src/contract/operation.ts";
import { OPERATIONS } from "../src/kinds/index.ts";
import { type Identity, makeAccount, makeServiceAccount, makeToken, makeUser, makeWorkload } from "./identities.ts";
import { startTestPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
let accountId: string;
let foreign: { id: string; workspace: string };
const who = {} as Record<
  "stranger" | "expired" | "member" | "scopeless" | "robot" | "adminRobot" | "foreignRobot" | "workload",
  Identity
>;
/** Access tokens, by what is wrong or weak about them. */
const tokens = {} as Record<"robot" | "adminRobot" | "foreignRobot" | "scopeless" | "workload", string>;
let worthless: Record<string, string | null>;

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
  who.adminRobot = await makeServiceAccount(store, "main", "admin");
  who.foreignRobot = await makeServiceAccount(store, "theirs", "admin");
  who.workload = await makeWorkload(store, "main", ["nothing:here"]);
  const token = (sub: string, more: object = {}, signWith?: string) =>
    makeToken(store, platform.url, { sub, ...more }, signWith);
  tokens.robot = await token(who.robot.sub);
  tokens.adminRobot = await token(who.adminRobot.sub);
  tokens.foreignRobot = await token(who.foreignRobot.sub);
  tokens.scopeless = await token(who.adminRobot.sub, { scope: "nothing:here" });
  tokens.workload = await token(who.workload.sub);
  const { sub } = who.adminRobot;
  const unsigned = `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url")}.${tokens.adminRobot.split(".")[1]}.`;
  worthless = {
    "no credentials": null,
    garbage: "garbage",
    "an expired key": who.expired.key,
    "an expired token": await token(sub, { exp: Math.floor(Date.now() / 1000) - 1 }),
    "a token without a signature": unsigned,
    "a token of another key": await token(sub, {}, generateSigningPair().privateKey),
    "a token of another issuer": await token(sub, { iss: "https://example.com" }),
    "a token for another audience": await token(sub, { aud: "https://example.com" }),
    "a token of nobody": await token("nobody"),
    "a token that has no consent": await token(sub, { sub_type: "user" }),
  };
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
      for (const [what, key] of Object.entries(worthless)) {
        const { status, body } = await send(operation, key);
        assert.equal(status, 401, `${operation.id} with ${what}`);
        assert.equal(body.code, 401);
      }
    });
  }

  for (const operation of guarded.filter(({ tenancy }) => tenancy === "workspace")) {
    test(`${operation.id} refuses other tenants`, async () => {
      // A workspace that is named as the thing itself is as invisible as any other thing of theirs.
      const expected = operation.workspaceParam ? 404 : 403;
      for (const key of [who.stranger.key, who.foreignRobot.key, tokens.foreignRobot])
        assert.equal((await send(operation, key)).status, expected);
    });
  }

  for (const operation of guarded.filter(
    ({ tenancy, path }) => tenancy === "account" && path.includes("{accountId}"),
  )) {
    test(`${operation.id} refuses other accounts`, async () => {
      for (const key of [who.stranger.key, tokens.foreignRobot]) assert.equal((await send(operation, key)).status, 403);
    });
  }

  for (const operation of guarded.filter(({ tenancy, role }) => tenancy === "account" && role === "admin")) {
    test(`${operation.id} needs an account admin`, async () => {
      for (const key of [who.member.key, who.adminRobot.key, tokens.adminRobot])
        assert.equal((await send(operation, key)).status, 403);
    });
  }

  for (const operation of guarded.filter(({ scope }) => scope !== null)) {
    test(`${operation.id} needs its scope`, async () => {
      for (const key of [who.scopeless.key, who.workload.key, tokens.scopeless, tokens.workload])
        assert.equal((await send(operation, key)).status, 403);
    });
  }

  for (const operation of guarded.filter(({ tenancy, role }) => tenancy === "workspace" && role === "admin")) {
    test(`${operation.id} needs an admin`, async () => {
      for (const key of [who.member.key, who.robot.key, tokens.robot])
        assert.equal((await send(operation, key)).status, 403);
    });
  }

  // Reading what is not there harms nothing, so here the walk shows that the right credentials do get in.
  for (const operation of guarded.filter(({ tenancy, method }) => tenancy === "workspace" && method === "GET")) {
    test(`${operation.id} lets its own admins in`, async () => {
      for (const key of [platform.apiKey, who.adminRobot.key, tokens.adminRobot]) {
        const { status } = await send(operation, key);
        assert.ok(status !== 401 && status !== 403, `${operation.id}: ${status}`);
      }
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
