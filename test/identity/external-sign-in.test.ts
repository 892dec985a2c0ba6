/** People sign in at another identity provider: how they come back, who they are here, and what an attacker may try. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { SignJWT } from "jose";
import { generateSigningPair } from "../../src/auth/oauth/access-tokens.ts";
import { testDatabases } from "../databases.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { Browser, type Page } from "./browser.ts";
import { CLIENT, type OtherPerson, type OtherProvider, startOtherProvider } from "./other-provider.ts";

const CALLBACK = "http://127.0.0.1:43210/callback";
const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`signing in elsewhere on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    let other: OtherProvider;
    let accountId = "";

    before(async () => {
      other = await startOtherProvider();
      const common = { issuer: other.issuer, client_id: CLIENT.id, client_secret: CLIENT.secret };
      platform = await startTestPlatform({
        ...(await database.migrated()),
        config: {
          identity_providers: JSON.stringify([
            { id: "corp", name: "Corp <SSO>", ...common },
            { id: "strict", name: "Strict", ...common, domains: ["corp.test"], create_users: false },
          ]),
        },
      });
      other.open(["corp", "strict"].map((id) => `${platform.url}/oauth/external/${id}`));
      accountId = (await platform.call("GET", "/accounts")).body[0].id;
    });
    after(async () => {
      await platform.stop();
      await other[Symbol.asyncDispose]();
    });

    const begin = async (browser: Browser): Promise<Page> => {
      const challenge = createHash("sha256").update(randomBytes(32)).digest("base64url");
      return browser.visit(
        `/oauth/authorize?${new URLSearchParams({
          client_id: "service",
          response_type: "code",
          redirect_uri: CALLBACK,
          code_challenge: challenge,
          code_challenge_method: "S256",
        })}`,
      );
    };
    /** To the provider and through it, up to the address that leads back to us. */
    const through = async (browser: Browser, person: OtherPerson, id = "corp"): Promise<string> => {
      const page = await begin(browser);
      const away = await browser.submit(page, {}, {}, id === "corp" ? 1 : 2);
      assert.ok(away.url.startsWith(`${other.issuer}/auth?`), away.url);
      other.who.next = person;
      return (await new Browser(other.issuer).visit(away.url)).url;
    };
    const signIn = async (person: OtherPerson, id?: string): Promise<Page> => {
      const browser = new Browser(platform.url);
      return browser.visit(await through(browser, person, id));
    };
    /** The person that the consent page greets. */
    const welcomed = async (person: OtherPerson, id?: string): Promise<string> => {
      const page = await signIn(person, id);
      assert.match(page.text, /Allow access/, page.text);
      return /act for ([^,]+), with/.exec(page.text)?.[1] ?? "";
    };
    const user = (email: string) => platform.app.store.people.getUser(email);

    test("somebody new becomes a person of the account, and stays the same one whatever the address", async () => {
      const ann = { sub: "ann", email: "Ann@corp.test", email_verified: true, given_name: "Ann" };
      assert.equal(await welcomed(ann), "ann@corp.test");
      const made = await user("ann@corp.test");
      assert.deepEqual([made?.given_name, made?.email_verified, made?.password_hash], ["Ann", 1, null]);
      assert.equal(await welcomed({ ...ann, email: "new-name@corp.test" }), "ann@corp.test");
      assert.equal(await user("new-name@corp.test"), null);
      const { body } = await platform.call("GET", `/accounts/${accountId}/audit?action=signIn&actor=${made?.sub}`);
      assert.deepEqual([body.data[0].actor.authMethod, body.data[0].outcome], ["oidc:corp", "ok"]);
    });

    test("groups give and take roles, and leave alone what people gave", async () => {
      const groupMappings = [
        { groupName: "devs", role: "member" },
        { groupName: "leads", role: "admin" },
      ];
      await platform.call("PUT", "/workspaces/main", { body: { groupMappings } });
      await platform.call("POST", "/workspaces", { body: { name: "quiet" } });
      const cy = { sub: "cy", email: "cy@corp.test", email_verified: true };
      const roles = async () => {
        const { sub = "" } = (await user(cy.email)) ?? {};
        const roleIn = (workspace: string) => platform.app.store.people.roleIn(workspace, sub);
        return [await roleIn("main"), await roleIn("quiet")];
      };
      for (const [groups, role] of [
        [["devs", "others"], "member"],
        [["devs", "leads"], "admin"],
        [["devs"], "member"],
        [[], null],
        [["Devs", "lead"], null],
      ] as const) {
        await welcomed({ ...cy, groups: [...groups] });
        assert.deepEqual(await roles(), [role, null], groups.join());
      }
      await platform.app.store.write((tx) =>
        user(cy.email).then((found) => platform.app.store.people.setMember(tx, "main", found?.sub ?? "", "admin")),
      );
      await welcomed({ ...cy, groups: ["devs"] });
      assert.deepEqual(await roles(), ["admin", null], "an admin made by people stays one");
    });

    test("an address ties to a person of ours only when it is verified, and only once", async () => {
      const { store } = platform.app;
      const { sub } = await makeUser(store, accountId, "member");
      const email = (await store.people.getUser(sub))?.email ?? "";
      for (const claim of [{}, { email_verified: false }, { email_verified: "true" as unknown as boolean }])
        assert.match((await signIn({ sub: "mallory", email, ...claim })).text, /has not verified/);
      assert.equal(await welcomed({ sub: "owner", email, email_verified: true }), email);
      assert.equal((await user(email))?.email_verified, 1);
      const second = await signIn({ sub: "mallory", email, email_verified: true });
      assert.equal(second.status, 403);
      assert.match(second.text, /as somebody else/);
      const abroad = await makeAccount(store, `abroad-${database.name}`);
      const planted = await makeUser(store, abroad.id, "member");
      const victim = (await store.people.getUser(planted.sub))?.email ?? "";
      assert.match(
        (await signIn({ sub: "victim", email: victim, email_verified: true })).text,
        /nobody has shown that it is yours/,
      );
      const guest = await store.write(async (tx) => {
        const made = await store.people.createUser(tx, { email: "chief@corp.test" });
        await store.people.setMember(tx, "main", made.sub, "member");
        return made;
      });
      await store.people.setPassword(guest.sub, "known to whoever invited");
      assert.equal(await welcomed({ sub: "chief", email: guest.email, email_verified: true }), guest.email);
      const { sub: taken, password_hash: password, email_verified: isVerified } = (await user(guest.email)) ?? {};
      assert.deepEqual([taken, password, isVerified], [guest.sub, null, 1]);
    });

    test("a provider lets in no more than it was told to", async () => {
      const eve = { sub: "eve", email: "eve@corp.test", email_verified: true };
      assert.match((await signIn({ ...eve, email: "eve@evil.test" }, "strict")).text, /not let in/);
      assert.match((await signIn(eve, "strict")).text, /not known here/);
      assert.equal(await user(eve.email), null);
      const page = await begin(new Browser(platform.url));
      assert.ok(page.text.includes("Corp &#60;SSO&#62;"), "names are text");
    });

    test("an answer is for the browser that asked, for its provider, and once", async () => {
      const person = { sub: "dan", email: "dan@corp.test", email_verified: true };
      const browser = new Browser(platform.url);
      const back = await through(browser, person);
      assert.equal((await new Browser(platform.url).visit(back)).status, 400, "another browser");
      assert.equal((await browser.visit(back.replace("/external/corp", "/external/strict"))).status, 400, "mix-up");
      assert.equal((await browser.visit(back.replace(/state=[^&]+/, "state=guessed"))).status, 400);
      const other = await browser.visit(back.replace(/iss=[^&]+/, "iss=https%3A%2F%2Fevil.test"));
      assert.equal(other.status, 403, "it names somebody else");
      assert.equal((await browser.visit(back)).status, 400, "the state has been used");
      const again = new Browser(platform.url);
      const good = await through(again, person);
      assert.match((await again.visit(good)).text, /Allow access/);
      assert.equal((await again.visit(good)).status, 400, "replayed");
    });

    test("a token that is not the provider's own for this sign-in is worth nothing", async () => {
      const claims = { sub: "fay", email: "fay@corp.test", email_verified: true };
      const pair = generateSigningPair();
      const { createPrivateKey } = await import("node:crypto");
      const key = createPrivateKey(pair.privateKey);
      const forge = (header: object, more: object) =>
        new SignJWT({ iss: other.issuer, aud: CLIENT.id, ...claims, ...more })
          .setIssuedAt()
          .setExpirationTime("5m")
          .setProtectedHeader({ alg: "ES256", kid: "other", ...header })
          .sign(key);
      const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from(JSON.stringify({ iss: other.issuer, aud: CLIENT.id, ...claims })).toString("base64url")}.`;
      for (const idToken of [await forge({}, {}), await forge({ kid: "unknown" }, {}), none, "garbage"]) {
        const browser = new Browser(platform.url);
        const back = await through(browser, claims);
        other.lie = (request, response) => {
          if (request.url !== "/token") return false;
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify({ id_token: idToken, token_type: "Bearer" }));
          return true;
        };
        const page = await browser.visit(back);
        other.lie = null;
        assert.equal(page.status, 400, page.text);
      }
      assert.equal(await user(claims.email), null);
    });

    test("a token of another sign-in, and an answer about somebody else, are refused", async () => {
      const person = { sub: "gus", email: "gus@corp.test", email_verified: true };
      let stolen = "";
      const capture = new Browser(platform.url);
      const first = await through(capture, person);
      const swap = (path: string, change: (body: Record<string, unknown>) => object) => {
        const real = other.issuer;
        other.lie = (request, response) => {
          if (request.url !== path || request.headers["x-inner"]) return false;
          const chunks: Buffer[] = [];
          request.on("data", (chunk: Buffer) => chunks.push(chunk));
          request.on("end", async () => {
            const { host: _host, "content-length": _length, connection: _connection, ...headers } = request.headers;
            const inner = await fetch(real + path, {
              method: request.method ?? "GET",
              headers: { ...(headers as Record<string, string>), "x-inner": "1" },
              ...(request.method === "POST" ? { body: Buffer.concat(chunks) } : {}),
            });
            response.setHeader("content-type", "application/json");
            response.end(JSON.stringify(change((await inner.json()) as Record<string, unknown>)));
          });
          return true;
        };
      };
      swap("/token", (body) => {
        stolen = String(body.id_token);
        return body;
      });
      assert.match((await capture.visit(first)).text, /Allow access/);
      const victim = new Browser(platform.url);
      const back = await through(victim, person);
      swap("/token", (body) => ({ ...body, id_token: stolen }));
      assert.equal((await victim.visit(back)).status, 400, "the nonce is another's");
      const third = new Browser(platform.url);
      const answer = await through(third, person);
      swap("/me", (body) => ({ ...body, sub: "somebody-else" }));
      assert.equal((await third.visit(answer)).status, 400);
      other.lie = null;
    });
  });
}
