/**
 * The authorisation walk by callers and with credentials that can only be made in the store: of another account, of
 * workloads, expired, forged with our own key. Those that an admin makes walk through an installation (test/installed).
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { generateSigningPair } from "../src/auth/oauth/access-tokens.ts";
import type { Role } from "../src/contract/operation.ts";
import { OPERATIONS } from "../src/kinds/index.ts";
import { WORKLOAD_SCOPES } from "../src/kinds/workload/identity.ts";
import { type Principal, walkOperations } from "./authorisation-walk.ts";
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

let platform: TestPlatform;
let accountId: string;
let principals: Record<string, Principal>;
let worthless: Record<string, string | null>;

before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  const theirs = await makeAccount(store, "theirs");
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
    "a member": await person("member", { main: "member" }),
    "a member without the scope": await person("member", { main: "member" }, ["nothing:here"]),
    "an admin of another account": await person(null, { theirs: "admin" }, null, theirs.id),
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

walkOperations(() => ({ call: platform.call, workspace: "main", accountId, principals, worthless }));

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
