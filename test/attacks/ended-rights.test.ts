/** A right that has ended has ended everywhere: what was made with it opens nothing any more. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hashPassword } from "../../src/auth/passwords.ts";
import { forgetEnded } from "../../src/auth/rights/forget-ended.ts";
import type { Role } from "../../src/contract/operation.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/time/clock.ts";
import { makeToken, makeUser, makeWorkload, RUNNING_COPY } from "../identities.ts";
import { askToken, basic, GRANT } from "../identity/machine.ts";
import { type AddedPerson, PASSWORD } from "../identity/people.ts";
import { CALLBACK, program, proof, type Tokens } from "../identity/program.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
let aheadMs = 0;
let passwordHash = "";
const call: TestPlatform["call"] = (method, path, options) =>
  platform.call(method, path, { workspace: "main", ...options });

before(async () => {
  passwordHash = await hashPassword(PASSWORD);
  platform = await startTestPlatform({ clock: { now: () => Date.now() + aheadMs } });
  await made(call("POST", "/sandboxes", { body: { metadata: { name: "box" }, spec: {} } }));
  await made(
    call("POST", "/sandboxes/box/previews", {
      body: { metadata: { name: "door" }, spec: { port: 443, public: false } },
    }),
  );
});
after(() => platform.stop());

async function made(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
  return body;
}

const statusOf = async (key: string, path = "/workspaces"): Promise<number> =>
  (await call("GET", path, { key })).status;
const keyOf = async (key: string | undefined, body: object = {}): Promise<{ apiKey: string; id: string }> =>
  made(call("POST", "/api_keys", { body: { name: "made", ...body }, ...(key === undefined ? {} : { key }) }));
/** Somebody with a password; hashing it once is enough. */
async function someone(accountRole: Role = "member"): Promise<AddedPerson> {
  const { store } = platform.app;
  const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
  const { sub } = await makeUser(store, accountId, accountRole, { main: "member" });
  await store.people.setPassword(sub, passwordHash);
  const { email } = (await store.people.getUser(sub)) ?? assert.fail();
  return { email, password: PASSWORD, sub, accountId };
}

/** A program that registered itself and was allowed some scopes. */
async function allowedProgram(person: AddedPerson, scope: string): Promise<Tokens & { clientId: string }> {
  const oauth = program(platform.url);
  const { body: client } = await oauth.post("/oauth/register", { client_name: "a program", redirect_uris: [CALLBACK] });
  const clientId = client.client_id ?? "";
  const { verifier, challenge } = proof();
  const code = await oauth.codeFrom(person, challenge, { client_id: clientId, scope });
  const { status, body } = await oauth.redeem(code, verifier, { client_id: clientId });
  assert.equal(status, 200, JSON.stringify(body));
  return { clientId, access: body.access_token ?? "", refresh: body.refresh_token ?? "" };
}

const previewToken = (key: string | undefined, spec: object = {}): Promise<Answer> =>
  call("POST", "/sandboxes/box/previews/door/tokens", {
    body: { metadata: { name: "t" }, spec },
    ...(key === undefined ? {} : { key }),
  });
async function visit(token: string): Promise<number> {
  const { spec } = await made(call("GET", "/sandboxes/box/previews/door"));
  const response = await fetch(spec.url, { headers: { "x-service-preview-token": token } });
  await response.arrayBuffer();
  return response.status;
}
const sessionsOf = async (key: string): Promise<Answer["body"]> => made(call("GET", "/users/me/sessions", { key }));

describe("a key that a program made ends", () => {
  const ends: [string, (person: AddedPerson, granted: Tokens & { clientId: string }) => Promise<unknown>][] = [
    [
      "with the consent, when the program gives it back",
      (_person, { clientId, refresh }) =>
        program(platform.url).post("/oauth/revoke", { client_id: clientId, token: refresh }),
    ],
    [
      "when the person signs the program out",
      async (person, { clientId }) => {
        const { access: key } = await program(platform.url).tokens(person);
        const session = (await sessionsOf(key)).find(({ client }) => client === clientId);
        return made(call("DELETE", `/users/me/sessions/${session?.id}`, { key }));
      },
    ],
    [
      "when the person sets a new password",
      async (person) => {
        const { access: key } = await program(platform.url).tokens(person);
        const body = { newPassword: `${PASSWORD} again`, currentPassword: PASSWORD };
        return made(call("PUT", "/users/me/password", { key, body }));
      },
    ],
    [
      "when an admin sets a new password",
      ({ accountId, sub }) =>
        made(call("PUT", `/accounts/${accountId}/users/${sub}/password`, { body: { newPassword: PASSWORD } })),
    ],
    [
      "when the person leaves the account",
      ({ accountId, sub }) => made(call("DELETE", `/accounts/${accountId}/users/${sub}`)),
    ],
    ["when the program is removed", (_person, { clientId }) => platform.app.store.oauth.remove("Client", clientId)],
  ];
  for (const [title, end] of ends)
    test(title, async () => {
      const person = await someone();
      const granted = await allowedProgram(person, "apiKey:write apiKey:list workspaces:list");
      const child = await keyOf(granted.access);
      const grandchild = await keyOf(child.apiKey);
      assert.deepEqual([await statusOf(child.apiKey), await statusOf(grandchild.apiKey)], [200, 200]);
      await end(person, granted);
      assert.deepEqual(
        [await statusOf(granted.access), await statusOf(child.apiKey), await statusOf(grandchild.apiKey)],
        [401, 401, 401],
      );
    });

  test("also when the program calls itself the command line and has some scopes only", async () => {
    const person = await someone();
    const { access, refresh } = await program(platform.url).tokens(person, "apiKey:write workspaces:list");
    const { apiKey } = await keyOf(access);
    await program(platform.url).post("/oauth/revoke", { client_id: "service", token: refresh });
    assert.equal(await statusOf(apiKey), 401);
  });

  test("and is no longer in the list; a key of the person's own right stays", async () => {
    const person = await someone();
    const own = await program(platform.url).tokens(person);
    const kept = await keyOf(own.access);
    const { access, refresh, clientId } = await allowedProgram(person, "apiKey:write");
    const lent = await keyOf(access);
    await program(platform.url).post("/oauth/revoke", { client_id: clientId, token: refresh });
    await program(platform.url).post("/oauth/revoke", { client_id: "service", token: own.refresh });
    const listed = await made(call("GET", "/api_keys", { key: kept.apiKey }));
    assert.ok(listed.some(({ id }) => id === kept.id));
    assert.ok(!listed.some(({ id }) => id === lent.id));
    const { store } = platform.app;
    await forgetEnded({ store, clock: { now: () => Date.now() + aheadMs } });
    assert.equal(await store.keys.getKey(lent.id), null);
    assert.ok(await store.keys.getKey(kept.id));
  });

  test("a key that was made with a key without an end stays when that one is replaced", async () => {
    const old = await keyOf(undefined);
    const next = await keyOf(old.apiKey);
    await made(call("DELETE", `/api_keys/${old.id}`));
    assert.equal(await statusOf(next.apiKey), 200);
  });
});

describe("a key with an end leaves nothing behind", () => {
  test("service accounts that it made, their secrets, tokens and keys end with it", async () => {
    for (const end of ["time", "delete"] as const) {
      const brief = await keyOf(undefined, { expires_in: "1m" });
      const robot = await made(
        call("POST", "/service_accounts", { key: brief.apiKey, body: { name: "heir", role: "admin" } }),
      );
      const machine = { id: robot.client_id, secret: robot.client_secret };
      const ask = () => askToken(platform.url, GRANT, { authorization: basic(machine) });
      const token = (await ask()).body.access_token ?? "";
      const second = await made(call("POST", "/service_accounts", { key: token, body: { name: "heir of heir" } }));
      const { apiKey } = await made(
        call("POST", `/service_accounts/${robot.client_id}/api_keys`, { key: token, body: {} }),
      );
      assert.deepEqual([await statusOf(token), await statusOf(apiKey)], [200, 200]);
      if (end === "time") aheadMs += MINUTE_MS;
      else await made(call("DELETE", `/api_keys/${brief.id}`));
      assert.deepEqual([await statusOf(token), await statusOf(apiKey)], [401, 401], end);
      assert.equal((await ask()).status, 401);
      const listed = await made(call("GET", "/service_accounts"));
      assert.ok(!listed.some(({ client_id: id }) => [robot.client_id, second.client_id].includes(id)));
    }
  });

  test("it sets no password", async () => {
    const { accountId, email, sub } = await someone("admin");
    const { access } = await program(platform.url).tokens({ email, password: PASSWORD });
    const brief = await keyOf(access, { expires_in: "1m" });
    const newPassword = "another long password";
    for (const path of ["/users/me/password", `/accounts/${accountId}/users/${sub}/password`]) {
      const { status, body } = await call("PUT", path, { key: brief.apiKey, body: { newPassword } });
      assert.equal(status, 403, JSON.stringify(body));
    }
    await program(platform.url).tokens({ email, password: PASSWORD });
    const own = await keyOf(access);
    await made(call("PUT", "/users/me/password", { key: own.apiKey, body: { newPassword } }));
  });

  test("tokens of previews end with it, and none is made for longer", async () => {
    const brief = await keyOf(undefined, { expires_in: "1m" });
    const later = new Date(Date.now() + aheadMs + 2 * MINUTE_MS).toISOString();
    const longer = await previewToken(brief.apiKey, { expiresAt: later });
    assert.equal(longer.status, 403, JSON.stringify(longer.body));
    const { spec } = await made(previewToken(brief.apiKey));
    assert.ok(Date.parse(spec.expiresAt) <= Date.now() + aheadMs + MINUTE_MS);
    assert.equal(await visit(spec.token), 200);
    aheadMs += MINUTE_MS;
    assert.equal(await visit(spec.token), 401);
  });
});

test("a key has a name by which its owner tells it from others", async () => {
  for (const name of ["", "  "]) {
    const refused = await call("POST", "/api_keys", { body: { name } });
    assert.deepEqual([refused.status, refused.body.message], [400, "name: must not be empty."]);
  }
  assert.match((await made(call("POST", "/api_keys", { body: {} }))).name, /^key-[0-9a-f]{8}$/);
});

describe("an open invitation ends", () => {
  for (const [when, end] of [
    ["leaves", (sub: string) => made(call("DELETE", `/users/${sub}`))],
    ["is no admin any more", (sub: string) => made(call("PUT", `/users/${sub}`, { body: { role: "member" } }))],
  ] as const)
    test(`when the admin who made it ${when}`, async () => {
      const { store } = platform.app;
      const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
      const admin = await makeUser(store, accountId, "member", { main: "admin" });
      const invited = await makeUser(store, accountId, "member");
      const { email } = (await store.people.getUser(invited.sub)) ?? assert.fail();
      const { invitationId } = await made(call("POST", "/users", { body: { email }, key: admin.key }));
      const open = async (): Promise<number> => (await made(call("GET", "/invitations", { key: invited.key }))).length;
      assert.equal(await open(), 1);
      await end(admin.sub);
      assert.equal(await open(), 0);
      assert.equal((await call("POST", `/invitations/${invitationId}/accept`, { key: invited.key })).status, 410);
      assert.equal(await store.people.roleIn("main", invited.sub), null, "nobody came in");
    });

  let robots = 0;
  const robotWithKey = async (): Promise<{ robot: string; key: string }> => {
    robots += 1;
    const body = { name: `inviter-${robots}`, role: "admin" };
    const { client_id: robot } = await made(call("POST", "/service_accounts", { body }));
    const { apiKey: key } = await made(call("POST", `/service_accounts/${robot}/api_keys`, { body: { name: "k" } }));
    return { robot, key };
  };
  const machines: Record<string, () => Promise<{ key: string; end(): Promise<unknown> }>> = {
    "a key without an end that is deleted": async () => {
      const { apiKey: key, id } = await keyOf(undefined);
      return { key, end: () => made(call("DELETE", `/api_keys/${id}`)) };
    },
    "a service account that is deleted": async () => {
      const { key, robot } = await robotWithKey();
      return { key, end: () => made(call("DELETE", `/service_accounts/${robot}`)) };
    },
    "a service account that is no admin any more": async () => {
      const { key, robot } = await robotWithKey();
      return {
        key,
        end: () => made(call("PUT", `/service_accounts/${robot}`, { body: { name: "inviter", role: "member" } })),
      };
    },
  };
  for (const [maker, make] of Object.entries(machines))
    test(`that was made with ${maker}`, async () => {
      const { store } = platform.app;
      const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
      const { key, end } = await make();
      const invited = await makeUser(store, accountId, "member");
      const { email } = (await store.people.getUser(invited.sub)) ?? assert.fail();
      const { invitationId } = await made(call("POST", "/users", { body: { email }, key }));
      const open = async (): Promise<number> => (await made(call("GET", "/invitations", { key: invited.key }))).length;
      assert.equal(await open(), 1);
      await end();
      assert.equal(await open(), 0);
      assert.equal((await call("POST", `/invitations/${invitationId}/accept`, { key: invited.key })).status, 410);
      assert.equal(await store.people.roleIn("main", invited.sub), null, "nobody came in");
    });
});

describe("a token of a preview ends", () => {
  test("when its maker is no longer in the workspace, and does not come back", async () => {
    const person = await someone();
    const { access } = await program(platform.url).tokens(person);
    const { spec } = await made(previewToken(access));
    assert.equal(await visit(spec.token), 200);
    await made(call("DELETE", `/users/${person.sub}`));
    assert.equal(await visit(spec.token), 401);
    aheadMs += 1000;
    await made(call("POST", "/users", { body: { email: person.email } }));
    const [invitation] = await made(call("GET", "/invitations", { key: access }));
    await made(call("POST", `/invitations/${invitation.invitationId}/accept`, { key: access }));
    assert.equal(await visit(spec.token), 401);
    assert.equal(await visit((await made(previewToken(access))).spec.token), 200);
  });

  test("when the key or the consent that made it ends", async () => {
    const key = await keyOf(undefined);
    const { spec } = await made(previewToken(key.apiKey));
    const person = await someone();
    const granted = await allowedProgram(person, "sandboxes:update");
    const { spec: lent } = await made(previewToken(granted.access));
    assert.deepEqual([await visit(spec.token), await visit(lent.token)], [200, 200]);
    await made(call("DELETE", `/api_keys/${key.id}`));
    await program(platform.url).post("/oauth/revoke", { client_id: granted.clientId, token: granted.refresh });
    assert.deepEqual([await visit(spec.token), await visit(lent.token)], [401, 401]);
  });
});

/** A credential that was just made: how it is used, and how it is taken back. */
interface Minted {
  /** The status of a request with it. */
  use(): Promise<number>;
  revoke(): Promise<unknown>;
  /** The status after that; 401 unless something else is said. */
  refused?: number;
}

describe("what is revoked opens nothing at the next request", () => {
  const oauth = () => program(platform.url);
  let robots = 0;
  const makeRobot = async (body: object = {}): Promise<{ id: string; secret: string }> => {
    robots += 1;
    const robot = await made(call("POST", "/service_accounts", { body: { name: `robot-${robots}`, ...body } }));
    return { id: robot.client_id, secret: robot.client_secret };
  };
  const asRobot = async (machine: { id: string; secret: string }, path: string, fields: object) => {
    const headers = { authorization: basic(machine) };
    return oauth().post(path, fields, headers);
  };
  const endWorkload = async (): Promise<Minted> => {
    const { store } = platform.app;
    const workload = await makeWorkload(store, "main", ["drives:list"]);
    const account = await store.keys.findServiceAccountAcrossWorkspaces(workload.sub);
    const token = await makeToken(store, platform.url, { sub: workload.sub, copy: RUNNING_COPY });
    return {
      use: () => statusOf(token, "/drives"),
      async revoke() {
        await store.resources.update("main", account?.workload ?? "", ({ state }) => ({
          state: { ...state, copies: [] },
        }));
        aheadMs += SECOND_MS; // how long a copy is taken to run without another look
      },
    };
  };

  const forms: Record<string, () => Promise<Minted>> = {
    "an API key": async () => {
      const { apiKey, id } = await keyOf(undefined);
      return { use: () => statusOf(apiKey), revoke: () => made(call("DELETE", `/api_keys/${id}`)) };
    },
    "an API key of a service account": async () => {
      const { id } = await makeRobot();
      const keys = `/service_accounts/${id}/api_keys`;
      const key = await made(call("POST", keys, { body: {} }));
      return { use: () => statusOf(key.apiKey), revoke: () => made(call("DELETE", `${keys}/${key.id}`)) };
    },
    "an access token of a person": async () => {
      const { access, clientId } = await allowedProgram(await someone(), "workspaces:list");
      const body = { client_id: clientId, token: access };
      return { use: () => statusOf(access), revoke: () => oauth().post("/oauth/revoke", body) };
    },
    "an access token of the command line": async () => {
      const { access: token } = await oauth().tokens(await someone());
      return {
        use: () => statusOf(token),
        revoke: () => oauth().post("/oauth/revoke", { client_id: "service", token }),
      };
    },
    "a refresh token": async () => {
      const { refresh, clientId } = await allowedProgram(await someone(), "workspaces:list");
      let latest = refresh;
      return {
        async use() {
          const fields = { grant_type: "refresh_token", client_id: clientId, refresh_token: latest };
          const { status, body } = await oauth().post("/oauth/token", fields);
          latest = body.refresh_token ?? latest;
          return status;
        },
        revoke: () => oauth().post("/oauth/revoke", { client_id: clientId, token: latest }),
        refused: 400,
      };
    },
    "an access token of a service account": async () => {
      const machine = await makeRobot();
      const { access_token: token = "" } = (await asRobot(machine, "/oauth/token", GRANT)).body;
      return { use: () => statusOf(token), revoke: () => asRobot(machine, "/oauth/revoke", { token }) };
    },
    "the secret of a service account": async () => {
      const machine = await makeRobot();
      return {
        use: async () => (await asRobot(machine, "/oauth/token", GRANT)).status,
        revoke: () => made(call("DELETE", `/service_accounts/${machine.id}`)),
      };
    },
    "a token of a workload's identity": endWorkload,
    "a preview's token": async () => {
      const { spec } = await made(previewToken(undefined));
      return {
        use: () => visit(spec.token),
        revoke: () => made(call("DELETE", `/sandboxes/box/previews/door/tokens/${spec.token}`)),
      };
    },
    "a drive's token, by the key that took it": () =>
      driveToken((key, id) => made(call("DELETE", `/api_keys/${id}`, { key }))),
    "a drive's token, by the permissions of the drive": () =>
      driveToken((_key, _id, drive) =>
        made(
          call("PUT", `/drives/${drive.metadata.name}`, {
            body: { ...drive, spec: { permissions: [{ labels: { a: "b" } }] } },
          }),
        ),
      ),
    "a drive's token, by the drive": () =>
      driveToken((_key, _id, drive) => made(call("DELETE", `/drives/${drive.metadata.name}`))),
    "an invitation": async () => {
      const { store } = platform.app;
      const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
      const { key, sub } = await makeUser(store, accountId, "member");
      const { email } = (await store.people.getUser(sub)) ?? assert.fail();
      const { invitationId } = await made(call("POST", "/users", { body: { email } }));
      let isUsed = false;
      return {
        /** It works once, so that the first use only looks. */
        async use() {
          if (isUsed) return (await call("POST", `/invitations/${invitationId}/accept`, { key })).status;
          isUsed = true;
          const open = await made(call("GET", "/invitations", { key }));
          return open.some((one) => one.invitationId === invitationId) ? 200 : 404;
        },
        revoke: () => made(call("DELETE", `/users/${email}`)),
        refused: 404,
      };
    },
  };

  let drives = 0;
  /** Introspection is where whoever serves a drive's files asks. */
  async function driveToken(
    revoke: (key: string, keyId: string, drive: Answer["body"]) => Promise<unknown>,
  ): Promise<Minted> {
    drives += 1;
    const name = `drive-${drives}`;
    const drive = await made(call("POST", "/drives", { body: { metadata: { name }, spec: {} } }));
    const person = await someone();
    const { access } = await oauth().tokens(person);
    const { apiKey: key, id } = await keyOf(access);
    const { access_token: token } = await made(call("POST", `/drives/${name}/access-token`, { key }));
    const machine = await makeRobot();
    const doors = async () => (await asRobot(machine, "/oauth/introspect", { token })).body;
    return {
      use: async () => (String((await doors()).active) === "true" ? 200 : 401),
      revoke: () => revoke(key, id, drive),
    };
  }
  for (const [title, mint] of Object.entries(forms))
    test(title, async () => {
      const { use, revoke, refused = 401 } = await mint();
      assert.equal(await use(), 200);
      await revoke();
      assert.equal(await use(), refused);
    });

  test("nobody revokes the token of somebody else", async () => {
    const [mine, theirs] = [await makeRobot(), await makeRobot()];
    const { access_token: token = "" } = (await asRobot(theirs, "/oauth/token", GRANT)).body;
    assert.ok((await asRobot(mine, "/oauth/revoke", { token })).status >= 400);
    assert.equal(await statusOf(token), 200);
  });
});
