/** People and service accounts, made as an admin makes them: through the API. */
import assert from "node:assert/strict";
import { randomWord } from "../../src/lib/ids.ts";
import type { ApiSuite } from "../each-platform.ts";
import type { Answer } from "../platform.ts";
import { type Person, program } from "./program.ts";

export interface AddedPerson extends Person {
  sub: string;
  accountId: string;
}

export interface Robot {
  id: string;
  secret: string;
  key: string;
}

export interface Place {
  workspace?: string;
  role?: "member" | "admin";
}

type Caller = Pick<ApiSuite, "call">;

export const PASSWORD = "correct horse battery";

/** Somebody of the account with a password, who is in no workspace. */
export async function addPerson({ call }: Caller, role: "member" | "admin" = "member"): Promise<AddedPerson> {
  const email = `person-${randomWord(12)}@example.test`;
  const accountId: string = (await done(call("GET", "/accounts")))[0].id;
  const users = `/accounts/${accountId}/users`;
  const { sub } = await done(call("POST", users, { body: { email } }));
  if (role === "admin") await done(call("PUT", `${users}/${sub}`, { body: { role } }));
  await done(call("PUT", `${users}/${sub}/password`, { body: { newPassword: PASSWORD } }));
  return { email, password: PASSWORD, sub, accountId };
}

/** Somebody who was invited to a workspace, signed in and accepted. */
export async function makeMember(
  { call, url }: Pick<ApiSuite, "call" | "url">,
  { workspace = "main", role = "member" }: Place = {},
): Promise<AddedPerson> {
  const person = await addPerson({ call });
  await done(call("POST", "/users", { workspace, body: { email: person.email, role } }));
  const { access: key } = await program(url()).tokens(person);
  const [invitation] = await done(call("GET", "/invitations", { key }));
  await done(call("POST", `/invitations/${invitation.invitationId}/accept`, { key }));
  return person;
}

let robots = 0;

/** A service account of a workspace, with a secret and a key. */
export async function makeRobot({ call }: Caller, { workspace = "main", role = "member" }: Place = {}): Promise<Robot> {
  robots += 1;
  const made = await done(call("POST", "/service_accounts", { workspace, body: { name: `robot-${robots}`, role } }));
  const keys = `/service_accounts/${made.client_id}/api_keys`;
  const { apiKey } = await done(call("POST", keys, { workspace, body: { name: "test" } }));
  return { id: made.client_id, secret: made.client_secret, key: apiKey };
}

async function done(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
  return body;
}
