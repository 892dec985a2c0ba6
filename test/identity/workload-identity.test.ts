/** What a running workload is given to call the platform with, shown on tasks of a job. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { onEachDatabase } from "../each-platform.ts";
import { makeAccount } from "../identities.ts";

const TRY_MS = 20;
/** Far longer than anything here takes: a test that waits in vain fails. */
const TRIES = 4500;

await onEachDatabase("identities of workloads", ({ call, make, store, url }) => {
  const dir = mkdtempSync(join(tmpdir(), "identity-"));
  after(() => rmSync(dir, { recursive: true, force: true }));
  const until = async (look: () => Promise<boolean> | boolean): Promise<void> => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (await look()) return;
      await delay(TRY_MS);
    }
    throw new Error("it did not happen");
  };
  const makeJob = (name: string) =>
    make("/jobs", name, {
      runtime: {
        image: "fake/base-image:latest",
        memory: 128,
        command: ["sh", "-c", "env > $OUT.part; mv $OUT.part $OUT; while [ ! -e $OUT.go ]; do sleep 0.02; done"],
      },
    });
  const start = async (job: string, file: string) => {
    const out = join(dir, file);
    const started = await call("POST", `/jobs/${job}/executions`, { body: { tasks: [{}], env: { OUT: out } } });
    assert.equal(started.status, 200, JSON.stringify(started.body));
    await until(() => existsSync(out));
    const credentials = /^BL_CLIENT_CREDENTIALS=(.+)$/m.exec(readFileSync(out, "utf8"))?.[1] ?? "";
    const end = async (): Promise<void> => {
      writeFileSync(`${out}.go`, "");
      const path = `/jobs/${job}/executions/${started.body.executionId}`;
      await until(async () => (await call("GET", path)).body.status === "succeeded");
    };
    return { credentials, end };
  };
  const ask = async (credentials: string, where = "header"): Promise<{ status: number; token: string }> => {
    const [client_id, client_secret] = Buffer.from(credentials, "base64").toString().split(":");
    const response = await fetch(`${url()}/v0/oauth/token`, {
      method: "POST",
      headers: {
        ...(where === "header" ? { authorization: `Basic ${credentials}` } : {}),
        "content-type": "application/json",
      },
      body: JSON.stringify({
        grant_type: "client_credentials",
        ...(where === "body" ? { client_id, client_secret } : {}),
      }),
    });
    const { access_token: token = "" } = (await response.json()) as { access_token?: string };
    return { status: response.status, token };
  };
  const reencoded = (credentials: string, change: (text: string) => string): string =>
    Buffer.from(change(Buffer.from(credentials, "base64").toString())).toString("base64");

  test("each copy has a secret of its own, which ends with it, and so do its tokens", async () => {
    await makeJob("twice");
    const [first, second] = [await start("twice", "first"), await start("twice", "second")];
    assert.notEqual(first.credentials, second.credentials);
    const reads = async (key: string) => (await call("GET", "/jobs/twice", { key })).status;
    const [one, other] = [await ask(first.credentials, "body"), await ask(second.credentials)];
    assert.deepEqual([one.status, await reads(one.token), await reads(other.token)], [200, 200, 200]);
    await first.end();
    assert.equal((await ask(first.credentials)).status, 401, "the copy has ended");
    await until(async () => (await reads(one.token)) === 401);
    assert.equal((await ask(second.credentials)).status, 200, "the other has not");
    assert.equal(await reads(other.token), 200);
    await second.end();
    await until(async () => (await reads(other.token)) === 401);
    assert.equal((await ask(second.credentials)).status, 401);
  });

  test("a workload reaches what it needs, in its own workspace, and nothing else", async () => {
    await makeJob("modest");
    await makeAccount(store(), "foreign");
    const { credentials, end } = await start("modest", "modest");
    const { token: key } = await ask(credentials);
    for (const path of ["/agents", "/functions", "/models", "/sandboxes", "/jobs/modest/executions"])
      assert.equal((await call("GET", path, { key })).status, 200, path);
    const refused: [string, string][] = [
      ["GET", "/audit"],
      ["GET", "/integrations/connections"],
      ["GET", "/service_accounts"],
      ["GET", "/users"],
      ["POST", "/agents"],
      ["POST", "/api_keys"],
      ["DELETE", "/jobs/modest"],
      ["GET", "/jobs/modest?show_secrets=true"],
    ];
    for (const [method, path] of refused)
      assert.equal((await call(method, path, { key, ...(method === "POST" ? { body: {} } : {}) })).status, 403, path);
    assert.equal((await call("GET", "/agents", { key, workspace: "foreign" })).status, 403);
    await end();
  });

  test("nobody manages it, and nothing like it opens a door", async () => {
    await makeJob("hidden");
    const { credentials, end } = await start("hidden", "hidden");
    const [id = "", secret = ""] = Buffer.from(credentials, "base64").toString().split(":");
    const listed = (await call("GET", "/service_accounts")).body;
    assert.ok(!listed.some(({ client_id }) => client_id === id));
    for (const [method, path] of [
      ["PUT", `/service_accounts/${id}`],
      ["DELETE", `/service_accounts/${id}`],
      ["POST", `/service_accounts/${id}/api_keys`],
    ] as const)
      assert.equal((await call(method, path, method === "DELETE" ? {} : { body: {} })).status, 404);
    const stranger = (await call("POST", "/service_accounts", { body: { name: "stranger" } })).body;
    for (const forged of [
      // Another character in the middle: the last one may stand for the same bits.
      reencoded(credentials, (text) => `${text.slice(0, -9)}${text.at(-9) === "A" ? "B" : "A"}${text.slice(-8)}`),
      reencoded(credentials, (text) => text.replace(id, stranger.client_id)),
      reencoded(credentials, (text) => text.replace(secret, secret.split(".")[0] ?? "")),
      reencoded(credentials, (text) => text.replace(secret, stranger.client_secret)),
    ])
      assert.equal((await ask(forged)).status, 401);
    await end();
  });
});
