/** Which test stands for which attack. A test that is renamed or removed is missed here. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const ATTACKS: Record<string, readonly (readonly [file: string, title: string])[]> = {
  "forged tokens: no algorithm, another key, issuer, audience or sort": [
    ["test/identity/machine-tokens.test.ts", "that are forged are worth nothing"],
    ["test/authorisation-walk.ts", "lets in who may, and nobody else"],
    [
      "test/identity/external-sign-in.test.ts",
      "a token that is not the provider's own for this sign-in is worth nothing",
    ],
  ],
  "a token or code used for what it was not given for": [
    ["test/identity/people-suite.ts", "what was given for one purpose is worth nothing for another"],
    ["test/identity/external-sign-in.test.ts", "a token of another sign-in, and an answer about somebody else"],
  ],
  "codes and refresh tokens used twice": [
    ["test/identity/people-suite.ts", "a code with its proof key becomes tokens, once"],
    ["test/identity/people-suite.ts", "a refresh token works once; used again it ends the whole consent"],
    ["test/identity/external-sign-in.test.ts", "an answer is for the browser that asked, for its provider, and once"],
  ],
  "redirect addresses that look right": [
    ["test/identity/people-suite.ts", "a public client without a proof key, or with a foreign address, gets nothing"],
    ["test/identity/registration-suite.ts", "what it says about itself is checked, and no secret is given out"],
  ],
  "forms sent from elsewhere, pages in frames": [
    ["test/identity/people-suite.ts", "steps belong to the browser that began them, and to people"],
    ["test/browser/link-attack-suite.ts", "another site can send none of the forms, and shows no page in a frame"],
  ],
  "a link to an invitation or a password in the wrong hands": [
    ["test/browser/link-attack-suite.ts", "the page of a link belongs to the browser that opened it"],
    ["test/browser/link-attack-suite.ts", "of two browsers that have opened one link, one gets in"],
    ["test/browser/invitation-suite.ts", "somebody who signs in as another person than the invited does not get in"],
    ["test/browser/password-suite.ts", "a link of an admin is worth nothing once the person belongs to others, too"],
  ],
  "learning a key or password from how long a comparison takes": [
    ["test/identity/attacks.test.ts", "the database holds no secret in clear: a comparison has nothing to leak"],
    ["test/identity/people-suite.ts", "guessing passwords is stopped, and tells nothing about who exists"],
  ],
  "guessing in bulk": [
    ["test/identity/people-suite.ts", "guessing passwords is stopped, and tells nothing about who exists"],
    ["test/identity/people-suite.ts", "a password is changed by who knows it, and that ends every session"],
    [
      "test/identity/registration.test.ts",
      "one that nobody allows anything is forgotten, and many at once are slowed down",
    ],
  ],
  "a session id planted before the sign-in": [
    ["test/identity/people-suite.ts", "a session id from before the sign-in is worth nothing after it"],
  ],
  "names and uids of other tenants": [
    ["test/identity/attacks.test.ts", "another tenant's names and uids open nothing"],
    ["test/authorisation-walk.ts", "lets in who may, and nobody else"],
  ],
  "two workspaces, or two credentials, in one request": [
    ["test/identity/attacks.test.ts", "the workspace is chosen once, and the same for the guard and for the work"],
  ],
  "setting what is read-only": [["test/identity/attacks.test.ts", "what a client may not set, it does not set"]],
  "handing on more rights than one has": [
    ["test/identity/attacks.test.ts", "nobody hands on more than they have"],
    ["test/identity/machine-suite.ts", "never raise a role, not even with the scope admin"],
    ["test/identity/registration-suite.ts", "it never has every right, whatever it asks for"],
  ],
  "being led to another site": [
    ["test/identity/attacks.test.ts", "no address of ours leads anywhere else"],
    ["test/browser/link-attack-suite.ts", "signing in leads to pages of the platform and nowhere else"],
  ],
  "making the platform call private addresses": [
    ["test/triggers/async.test.ts", "a workload that is gone ends it, and a callback address that is refused is told"],
    ["test/models/door-suite.ts", "private addresses are an administrator's choice, link-local ones nobody's"],
    ["test/e2e/mcp/integrations.test.ts", "an administrator decides whether private addresses may be called"],
    ["src/auth/external/identity-provider.test.ts", "leads elsewhere without TLS, is not used"],
    ["src/lib/network/address-class.test.ts", "::ffff:127.0.0.1"],
  ],
  "claiming somebody else's address": [
    ["test/e2e/people.test.ts", "an address that somebody else's admin wrote down opens nothing"],
    ["test/e2e/people.test.ts", "an invitation is only for the one who was invited"],
    [
      "test/identity/external-sign-in.test.ts",
      "an address ties to a person of ours only when it is verified, and only once",
    ],
  ],
  "posing as a workload": [
    ["test/identity/workload-identity.test.ts", "nobody manages it, and nothing like it opens a door"],
  ],
  "leaving a workspace or an account without an admin": [
    ["test/e2e/people.test.ts", "a workspace keeps an admin, also when two leave at once"],
    ["test/e2e/people.test.ts", "an account keeps an admin, also when two go at once"],
  ],
  "changing what the audit log says": [
    ["test/identity/audit.test.ts", "cannot be changed, and shows it when somebody did so behind its back"],
  ],
};

for (const [attack, tests] of Object.entries(ATTACKS))
  test(`tested: ${attack}`, () => {
    for (const [file, title] of tests) {
      const said = readFileSync(file, "utf8");
      assert.ok(said.includes(title) || said.includes(title.replaceAll("'", "\\'")), `${file} has no test '${title}'`);
    }
  });
