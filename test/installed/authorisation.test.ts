/** The authorisation walk through an installation, by everybody whom its admin can let in, and with what opens nothing. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before } from "node:test";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import type { Role } from "../../src/contract/operation.ts";
import { type Principal, type World, walkOperations } from "../authorisation-walk.ts";
import { machineToken } from "../identity/machine.ts";
import { type AddedPerson, addPerson, makeMember, makeRobot, type Place } from "../identity/people.ts";
import { program } from "../identity/program.ts";
import { installation } from "./installation.ts";
import { apiOf } from "./suite.ts";

const WORKSPACE = "walked";
const ELSEWHERE = "walked-elsewhere";

const suite = apiOf(await installation());
const { call, url } = suite;
let world: World;
walkOperations(() => world);

before(async () => {
  for (const name of [WORKSPACE, ELSEWHERE]) {
    const made = await call("POST", "/workspaces", { body: { name } });
    assert.ok([200, 409].includes(made.status), JSON.stringify(made.body));
  }
  const accountId = (await call("GET", "/accounts")).body[0].id;
  const robot = await makeRobot(suite, { workspace: WORKSPACE, role: "admin" });
  world = {
    call,
    workspace: WORKSPACE,
    accountId,
    principals: {
      "an account admin": await person(await addPerson(suite, "admin"), "admin", "admin"),
      "a workspace admin": await member({ role: "admin" }),
      "a member": await member({}),
      "a member with the scope admin": await member({}, ["admin"]),
      "a member without the scope": await member({}, ["drives:list"]),
      "an admin without the scope": await person(await addPerson(suite, "admin"), "admin", "admin", ["drives:list"]),
      "an admin of another workspace": await member({ workspace: ELSEWHERE, role: "admin" }),
      "a service account": await machine({}),
      "an admin's service account": await machine({ role: "admin" }),
      "a service account of another workspace": await machine({ workspace: ELSEWHERE, role: "admin" }),
      "a token without the scope": {
        ...{ inWorkspace: "admin", inAccount: "member", isPerson: false, scopes: ["drives:list"] },
        credentials: [await machineToken(url(), robot, "drives:list")],
      },
    },
    worthless: await worthless(await machineToken(url(), robot)),
  };
});

/** Somebody with a key of their own; signed in as well, unless the key is for less than they may do. */
async function person(
  who: AddedPerson,
  inAccount: Role,
  inWorkspace: Role | null,
  scopes: string[] | null = null,
): Promise<Principal> {
  const { access } = await program(url()).tokens(who);
  const made = await call("POST", "/api_keys", { key: access, body: { name: "walk", ...(scopes ? { scopes } : {}) } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return {
    credentials: [made.body.apiKey, ...(scopes ? [] : [access])],
    inAccount,
    inWorkspace,
    scopes,
    isPerson: true,
  };
}

const member = async (
  { workspace = WORKSPACE, role = "member" }: Place,
  scopes: string[] | null = null,
): Promise<Principal> =>
  person(await makeMember(suite, { workspace, role }), "member", workspace === WORKSPACE ? role : null, scopes);

async function machine({ workspace = WORKSPACE, role = "member" }: Place): Promise<Principal> {
  const robot = await makeRobot(suite, { workspace, role });
  const inWorkspace = workspace === WORKSPACE ? role : null;
  const credentials = [robot.key, await machineToken(url(), robot)];
  return { credentials, inWorkspace, inAccount: "member", scopes: null, isPerson: false };
}

async function worthless(token: string): Promise<World["worthless"]> {
  const gone = await makeRobot(suite, { workspace: WORKSPACE, role: "admin" });
  const itsToken = await machineToken(url(), gone);
  const removed = await call("DELETE", `/service_accounts/${gone.id}`, { workspace: WORKSPACE });
  assert.equal(removed.status, 200, JSON.stringify(removed.body));
  const ended = await addPerson(suite, "admin");
  const { access, refresh } = await program(url()).tokens(ended);
  await program(url()).post("/oauth/revoke", { token: refresh, client_id: "service" });
  const [, claims] = token.split(".");
  const theirs = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const { kid = "" } = decodeProtectedHeader(token);
  return {
    "no credentials": null,
    garbage: "garbage",
    "the key of a service account that is gone": gone.key,
    "its token": itsToken,
    "a token of a sign-in that was ended": access,
    "a token without a signature": `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url")}.${claims}.`,
    "a token that somebody else signed": await new SignJWT(decodeJwt(token))
      .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid })
      .sign(theirs),
  };
}
