/** The client and the mirror against an API server that restarts, forgets, loses answers and falls silent. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { openAccount } from "../../src/node/drivers/kubernetes/client/account.ts";
import { KubeClient } from "../../src/node/drivers/kubernetes/client/kube-client.ts";
import { Mirror } from "../../src/node/drivers/kubernetes/client/mirror.ts";
import { API_TOKEN, ApiServer } from "./api-server.ts";

const CLAIMS = "/api/v1/namespaces/n/persistentvolumeclaims";
const PODS = "/api/v1/namespaces/n/pods";
const annotations = z.record(z.string(), z.string()).optional();
const anything = z.looseObject({ metadata: z.object({ name: z.string(), uid: z.string(), annotations }) });
const claim = (name: string) => ({ metadata: { name, labels: { "berth.instance": "i" } }, spec: {} });
const pod = (name: string) => ({ ...claim(name), spec: { containers: [{ name: "c", image: "i" }] } });
const account = (server: string) => ({ server, namespace: "n", tls: {}, token: async () => API_TOKEN });

async function open(t: TestContext, patienceMs?: number): Promise<{ api: ApiServer; client: KubeClient }> {
  const api = new ApiServer();
  await api.start();
  const client = new KubeClient({ account: account(api.url), ...(patienceMs ? { patienceMs } : {}) });
  t.after(async () => {
    await client.close();
    await api.stop();
  });
  return { api, client };
}

test("a create whose answer was lost finds its object, and a delete leaves an object of another uid alone", async (t) => {
  const { api, client } = await open(t);
  let losses = 2;
  api.losesAnswer = (method) => method === "POST" && losses-- > 0;
  const { object, made } = await client.create(anything, CLAIMS, claim("a"));
  assert.equal(made, false);
  assert.equal(api.store.list("persistentvolumeclaims", "n").length, 1);
  await client.remove(`${CLAIMS}/a`, { uid: "another-uid" }, 0);
  assert.equal((await client.find(anything, `${CLAIMS}/a`))?.metadata.uid, object.metadata.uid);
  api.losesAnswer = (method) => method === "DELETE" && losses++ < 0;
  await client.remove(`${CLAIMS}/a`, { uid: object.metadata.uid }, 0);
  assert.equal(await client.find(anything, `${CLAIMS}/a`), null);
  await client.remove(`${CLAIMS}/a`, { uid: object.metadata.uid }, 0);
});

test("edits of two writers both hold, and a conflict is tried again from the newest object", async (t) => {
  const { api, client } = await open(t);
  await client.create(anything, CLAIMS, claim("a"));
  let conflicts = 3;
  api.conflicts = (method) => method === "PATCH" && conflicts-- > 0;
  const note = (key: string) =>
    client.edit(anything, `${CLAIMS}/a`, () => ({ metadata: { annotations: { [key]: "yes" } } }));
  await Promise.all([note("one"), note("two"), note("three")]);
  assert.deepEqual((await client.find(anything, `${CLAIMS}/a`))?.metadata.annotations, {
    one: "yes",
    two: "yes",
    three: "yes",
  });
  assert.equal(await client.edit(anything, `${CLAIMS}/none`, () => ({})), null);
});

test("a call waits for an API server that restarts, gives up when its patience ends, and is refused without a right", async (t) => {
  const { api, client } = await open(t);
  await client.create(anything, CLAIMS, claim("a"));
  await api.stop();
  const asking = client.find(anything, `${CLAIMS}/a`);
  await api.start();
  assert.equal((await asking)?.metadata.name, "a");
  await assert.rejects(client.json(z.unknown(), "GET", "/api/v1/namespaces/n/secrets"), /forbidden/);
  await api.stop();
  const hasty = new KubeClient({ account: account(api.url), patienceMs: 1 });
  t.after(() => hasty.close());
  await assert.rejects(hasty.find(anything, `${CLAIMS}/a`), { code: "unavailable", message: /does not answer/ });
});

test("a list has all pages", async (t) => {
  const { api, client } = await open(t);
  for (let n = 0; n < 1203; n += 1)
    api.store.add("pods", { ...pod(`p-${n}`), metadata: { ...pod(`p-${n}`).metadata, namespace: "n" } });
  assert.equal(
    (await client.list(anything, PODS, { query: { labelSelector: "berth.instance=i" } })).items.length,
    1203,
  );
  assert.equal((await client.list(anything, PODS, { query: { labelSelector: "berth.instance=j" } })).items.length, 0);
  assert.equal(api.requests.filter((each) => each.includes("limit=500")).length, 4);
});

test("a mirror hears of changes after an end, a silence, a restart and an expired version", async (t) => {
  const { api, client } = await open(t);
  const mirror = new Mirror({
    client,
    path: PODS,
    labelSelector: "berth.instance=i",
    watchSeconds: 0.2,
    silenceMs: 200,
  });
  t.after(() => mirror.stop());
  mirror.start();
  let n = 0;
  const heard = async (): Promise<void> => {
    const name = `p-${n++}`;
    await new Promise<void>((resolve) => {
      mirror.onChange(name, resolve);
      api.store.add("pods", { ...pod(name), metadata: { ...pod(name).metadata, namespace: "n" } });
    });
  };
  await heard();
  while (api.watches === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  api.endWatches();
  await heard();
  assert.equal(mirror.lists, 1, "a watch that ended goes on from its version");
  api.silence();
  await heard();
  await api.stop();
  const missed = heard();
  await api.start();
  await missed;
  assert.equal(mirror.lists, 1);
  api.endWatches();
  while (api.watches > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await api.stop();
  api.store.add("pods", { ...pod("unseen"), metadata: { ...pod("unseen").metadata, namespace: "n" } });
  api.store.compact();
  const again = new Promise<void>((resolve) => mirror.onChange("unseen", resolve));
  await api.start();
  await again;
  assert.equal(mirror.lists, 2, "an expired version leads to a new list");
});

test("an account is the pod's own or that of a kubeconfig, and what cannot be done is refused", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "kube-account-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  write("token", "first\n");
  write("ca.crt", "CA");
  write("namespace", "home");
  const inside = openAccount({ folder: dir, host: "10.0.0.1", port: "6443" });
  assert.deepEqual([inside.server, inside.namespace, inside.tls.ca], ["https://10.0.0.1:6443", "home", "CA"]);
  assert.equal(await inside.token(), "first");
  write("token", "second");
  assert.equal(await inside.token(), "second");
  assert.throws(() => openAccount({ folder: "/nowhere", host: "10.0.0.1" }), { code: "unavailable" });

  const config = (user: object): string =>
    write(
      "config",
      JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "k", user: "u", namespace: "ns" } }],
        clusters: [{ name: "k", cluster: { server: "https://k:1/", "certificate-authority": "ca.crt" } }],
        users: [{ name: "u", user }],
      }),
    );
  const data = Buffer.from("CERT").toString("base64");
  const outside = openAccount({
    kubeconfig: config({ "client-certificate-data": data, "client-key": "token", tokenFile: "token" }),
  });
  assert.deepEqual(
    [outside.server, outside.namespace, outside.tls, await outside.token()],
    ["https://k:1", "ns", { ca: "CA", cert: "CERT", key: "second" }, "second"],
  );
  assert.throws(() => openAccount({ kubeconfig: config({ exec: { command: "aws" } }) }), /signs in by 'exec'/);
  assert.throws(() => openAccount({ kubeconfig: join(dir, "none") }), /cannot be read/);
});
