/** A workspace tries to keep the authority's orders from others: with more than its share, or with names that are limited. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";
import { type IssueDeps, issueCertificates } from "../../src/kinds/custom-domain/issue.ts";
import { ORDER_WINDOW_MS, WORKSPACE_ORDERS_MAX } from "../../src/kinds/custom-domain/order-turns.ts";
import type { Settings } from "../../src/kinds/port.ts";
import { testDatabases } from "../databases.ts";
import { addWorkspace, draftOf, openTestStore } from "../store.ts";

/** Domains of one round. One run orders at most 20. */
const DOMAINS = 20;

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all)
  describe(`orders of certificates on ${database.name}`, { skip: database.skip }, () => {
    test("domains that are deleted and made again stay within the workspace's share of orders", async (t) => {
      await using authority = await startRefusingAuthority();
      const store = await openTestStore(await database.migrated());
      t.after(() => store.close());
      for (const name of ["main", "other"]) await addWorkspace(store, name);
      const acme = { directory: `${authority.url}/directory`, email: null, challenge: "http-01", hook: null, ca: null };
      const settings = { acme, ownCertificate: true, publicUrl: "" } as unknown as Settings;
      let nowMs = Date.now();
      const deps: IssueDeps = { store, clock: { now: () => nowMs }, settings };
      const run = () => issueCertificates(deps, new AbortController().signal);
      const spec = { status: "verified", domainType: "applications" };
      const round = async (word: string): Promise<void> => {
        const uids: string[] = [];
        for (let at = 0; at < DOMAINS; at += 1)
          uids.push(
            (await store.resources.create(draftOf("customdomain", `${word}-${at}.test`, { spec }))).resource.uid,
          );
        await run();
        for (const uid of uids) await store.resources.delete("main", uid);
        await store.certificates.remove((await store.certificates.list()).map(({ name }) => name));
      };
      for (const word of ["a", "b", "c", "d"]) await round(word);
      assert.equal(authority.orders(), WORKSPACE_ORDERS_MAX);

      // Another workspace has its own share, and the first has it again when the authority counts anew.
      await store.resources.create(draftOf("customdomain", "quiet.test", { workspace: "other", spec }));
      await run();
      assert.equal(authority.orders(), WORKSPACE_ORDERS_MAX + 1);
      nowMs += ORDER_WINDOW_MS + 1;
      await round("e");
      assert.ok(authority.orders() > WORKSPACE_ORDERS_MAX + 1);
      const { length } = await store.database.read.selectFrom("certificate_orders").selectAll().execute();
      assert.ok(length <= DOMAINS + 1, "rows of before the window are removed");
    });

    test("a wait that the authority asks for one name does not hold up another workspace; one for the account does", async (t) => {
      await using authority = await startRefusingAuthority();
      const store = await openTestStore(await database.migrated());
      t.after(() => store.close());
      const acme = { directory: `${authority.url}/directory`, email: null, challenge: "http-01", hook: null, ca: null };
      const settings = { acme, ownCertificate: true, publicUrl: "" } as unknown as Settings;
      const deps: IssueDeps = { store, clock: { now: () => Date.now() }, settings };
      const run = () => issueCertificates(deps, new AbortController().signal);
      const spec = { status: "verified", domainType: "applications" };
      const add = async (workspace: string, name: string): Promise<void> => {
        await addWorkspace(store, workspace);
        await store.resources.create(draftOf("customdomain", name, { workspace, spec }));
      };
      await add("main", "www.limited.test");
      await add("other", "quoted.test");
      await add("third", "patient.test");
      authority.limit(({ name }) =>
        name === "patient.test"
          ? { detail: "too many new orders from this account in the last 3h" }
          : name === "quoted.test"
            ? { detail: 'too many failed authorizations for "quoted.test"' }
            : { detail: "limited", subproblems: [{ identifier: { type: "dns", value: "limited.test" } }] },
      );
      await run();
      assert.equal(authority.orders(), 3, "names that are limited do not end the run");
      await add("fourth", "patient-too.test");
      await add("fifth", "late.test");
      authority.limit(() => ({ detail: "too many new orders from this account in the last 3h" }));
      await run();
      assert.equal(authority.orders(), 4, "a limit of the account ends the run");
    });
  });

interface Limited {
  detail: string;
  subproblems?: object[];
}

/** Speaks as much of ACME as an order that is refused needs. */
async function startRefusingAuthority() {
  let orders = 0;
  let limit: ((order: { name: string }) => Limited) | null = null;
  const server = createServer(async (req, res) => {
    const body = await text(req);
    const path = req.url ?? "";
    const answer = (status: number, body: object, headers = {}): void =>
      void res.writeHead(status, { "replay-nonce": "nonce", ...headers }).end(JSON.stringify(body));
    if (path === "/newOrder") orders += 1;
    if (path === "/newAccount") answer(201, {}, { location: `${url}/account` });
    else if (path === "/newOrder" && limit)
      answer(429, { type: RATE_LIMITED, ...limit({ name: nameIn(body) }) }, { "retry-after": "3600" });
    else if (path === "/newOrder") answer(403, { type: "refused", detail: "no" });
    else
      answer(
        200,
        Object.fromEntries(
          ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange"].map((word) => [word, `${url}/${word}`]),
        ),
      );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    orders: () => orders,
    /** Answers every further order with 429 and this problem. */
    limit(problem: (order: { name: string }) => Limited): void {
      limit = problem;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const RATE_LIMITED = "urn:ietf:params:acme:error:rateLimited";

function nameIn(message: string): string {
  const { payload } = JSON.parse(message) as { payload: string };
  const { identifiers } = JSON.parse(Buffer.from(payload, "base64url").toString()) as {
    identifiers: { value: string }[];
  };
  return identifiers[0]?.value ?? "";
}
