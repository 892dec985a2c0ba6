/**
 * The walk: every operation, called by everybody. What each may do is worked out here from what the operation declares,
 * and compared with what the platform does; a new operation cannot escape it.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { generateSigningPair } from "../src/auth/oauth/access-tokens.ts";
import type { Operation, Role } from "../src/contract/operation.ts";
import { OPERATIONS } from "../src/kinds/index.ts";
import { WORKLOAD_SCOPES } from "../src/kinds/workload/identity.ts";
import {
  type Identity,
  makeAccount,
  makeServiceAccount,
  makeToken,
  makeUser,
  makeWorkload,
  RUNNING_COPY,
} from "./identities.ts";
import { startTestPlatform, type TestPlatform } from "./platform.ts";

interface Principal {
  /** Keys and tokens that all stand for the same somebody. */
  credentials: string[];
  /** In the workspace `main`, and in its account. */
  inWorkspace: Role | null;
  inAccount: Role | null;
  /** null = all. */
  scopes: readonly string[] | null;
  isPerson: boolean;
}

let platform: TestPlatform;
let accountId: string;
let principals: Record<string, Principal>;
let worthless: Record<string, string | null>;

before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  const theirs = await makeAccount(store, "theirs");
  await platform.call("POST", "/workspaces", { body: { name: "second" } });
  const token = (sub: string, more: object = {}, signWith?: string) =>
    makeToken(store, platform.url, { sub, ...more }, signWith);

  const person = async (
    inAccount: Role | null,
    workspaces: Record<string, Role>,
    scopes: string[] | null = null,
    account = accountId,
  ): Promise<Principal> => {
    const { key } = await makeUser(store, account, inAccount ?? "admin", workspaces, scopes);
    // Who administers an account administers all of its workspaces.
    const inWorkspace = inAccount === "admin" ? "admin" : (workspaces.main ?? null);
    return { credentials: [key], inWorkspace, inAccount, scopes, isPerson: true };
  };
  const machine = async (
    { key, sub }: Identity,
    inWorkspace: Role | null,
    scopes: readonly string[] | null = null,
  ) => ({
    credentials: [key, await token(sub, { copy: RUNNING_COPY })],
    inWorkspace,
    inAccount: inWorkspace && ("member" as const),
    scopes,
    isPerson: false,
  });

  const adminRobot = await makeServiceAccount(store, "main", "admin");
  const workload = await makeWorkload(store, "main", [...WORKLOAD_SCOPES]);
  principals = {
    "an account admin": await person("admin", {}),
    "a workspace admin": await person("member", { main: "admin" }),
    "a member": await person("member", { main: "member" }),
    "a member with the scope admin": await person("member", { main: "member" }, ["admin"]),
    "a member without the scope": await person("member", { main: "member" }, ["nothing:here"]),
    "an admin without the scope": await person("admin", { main: "admin" }, ["nothing:here"]),
    "an admin of another workspace": await person("member", { second: "admin" }),
    "an admin of another account": await person(null, { theirs: "admin" }, null, theirs.id),
    "a service account": await machine(await makeServiceAccount(store, "main"), "member"),
    "an admin's service account": await machine(adminRobot, "admin"),
    "a service account of another workspace": await machine(await makeServiceAccount(store, "theirs", "admin"), null),
    "a workload": await machine(workload, "member", WORKLOAD_SCOPES),
    "a token without the scope": {
      credentials: [await token(adminRobot.sub, { scope: "nothing:here" })],
      inWorkspace: "admin",
      inAccount: "member",
      scopes: [],
      isPerson: false,
    },
  };
  worthless = {
    ...(await worthlessCredentials(adminRobot.sub, token)),
    "a token of a workload's copy that has ended": await token(workload.sub, { copy: "copy-0" }),
    "a token of no copy of a workload": await token(workload.sub),
  };
});
after(() => platform.stop());

async function worthlessCredentials(
  sub: string,
  token: (sub: string, more?: object, signWith?: string) => Promise<string>,
): Promise<Record<string, string | null>> {
  const { store } = platform.app;
  const expired = await makeUser(store, accountId, "admin", { main: "admin" }, null, Date.now() - 1000);
  const [, claims] = (await token(sub)).split(".");
  return {
    "no credentials": null,
    garbage: "garbage",
    "an expired key": expired.key,
    "an expired token": await token(sub, { exp: Math.floor(Date.now() / 1000) - 1 }),
    "a token without a signature": `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url")}.${claims}.`,
    "a token of another key": await token(sub, {}, generateSigningPair().privateKey),
    "a token of another issuer": await token(sub, { iss: "https://example.com" }),
    "a token for another audience": await token(sub, { aud: "https://example.com" }),
    "a token of nobody": await token("nobody"),
    "a token that has no consent": await token(sub, { sub_type: "user" }),
  };
}

/** What the declaration says: refused, not even told that it exists, or let in. */
function expected({ tenancy, scope, role, path, workspaceParam }: Operation, who: Principal): 403 | 404 | "in" {
  const { scopes } = who;
  if (scope !== null && scopes && !scopes.includes(scope) && !scopes.includes("admin")) return 403;
  if (tenancy === "account" && path.includes("{accountId}"))
    return who.inAccount && (role === "member" || who.inAccount === "admin") ? "in" : 403;
  if (tenancy !== "workspace") return "in";
  if (!who.inWorkspace) return workspaceParam ? 404 : 403;
  return role === "member" || who.inWorkspace === "admin" ? "in" : 403;
}

/** A path that names nothing that exists, in our own workspace and account. */
const pathOf = (operation: Operation): string =>
  operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === operation.workspaceParam ? "main" : name === "accountId" ? accountId : "no-such-thing",
  );

/** No body is a list, so whoever is let in changes nothing. */
const send = async (operation: Operation, key: string | null): Promise<number> =>
  (
    await platform.call(operation.method, pathOf(operation), {
      key,
      workspace: "main",
      ...(operation.body ? { body: [] } : {}),
    })
  ).status;

/** What has no body to be wrong would really happen. */
const isHarmless = ({ method, body }: Operation): boolean => method === "GET" || body !== undefined;
/** Some things are for people alone; their own tests say so. */
const isForAll = ({ tenancy }: Operation, { isPerson }: Principal): boolean => isPerson || tenancy === "workspace";

describe("every operation", () => {
  for (const operation of OPERATIONS.filter(({ tenancy }) => tenancy !== "public")) {
    test(`${operation.id} lets in who may, and nobody else`, async () => {
      const unknown = Object.entries(worthless).map(async ([what, key]) =>
        assert.equal(await send(operation, key), 401, `${operation.id} with ${what}`),
      );
      const known = Object.entries(principals).flatMap(([what, who]) => {
        const outcome = expected(operation, who);
        if (outcome === "in" && !(isHarmless(operation) && isForAll(operation, who))) return [];
        return who.credentials.map(async (key) => {
          const status = await send(operation, key);
          if (outcome === "in")
            assert.ok(status !== 401 && status !== 403, `${operation.id} refuses ${what}: ${status}`);
          else assert.equal(status, outcome, `${operation.id} called by ${what}`);
        });
      });
      await Promise.all([...unknown, ...known]);
    });
  }
});

for (const operation of OPERATIONS.filter(({ adminUses = [] }) => adminUses.length > 0))
  test(`${operation.id} keeps for admins what is theirs`, async () => {
    for (const { query, applies } of operation.adminUses ?? []) {
      assert.ok(applies(Object.fromEntries(new URLSearchParams(query))), query);
      for (const [what, who] of Object.entries(principals)) {
        const isAdmin = (operation.tenancy === "account" ? who.inAccount : who.inWorkspace) === "admin";
        if (expected(operation, who) !== "in" || !isForAll(operation, who)) continue;
        for (const key of who.credentials) {
          const path = `${pathOf(operation)}?${query}`;
          const { status } = await platform.call("GET", path, { key, workspace: "main" });
          assert.equal(status === 403, !isAdmin, `${path} by ${what}: ${status}`);
        }
      }
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
