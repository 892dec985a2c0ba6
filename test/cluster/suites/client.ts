/** The driver's client against a real API server: the truths that the API server of `test/kubernetes` imitates. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { z } from "zod";
import { openAccount } from "../../../src/node/drivers/kubernetes/client/account.ts";
import { KubeClient } from "../../../src/node/drivers/kubernetes/client/kube-client.ts";
import { Mirror } from "../../../src/node/drivers/kubernetes/client/mirror.ts";
import type { Cluster } from "../world/cluster.ts";

const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const annotations = z.record(z.string(), z.string()).optional();
const schema = z.looseObject({ metadata: z.object({ name: z.string(), uid: z.string(), annotations }) });
const selector = { labelSelector: "suite=client" };
const claim = (name: string) => ({
  metadata: { name, labels: { suite: "client" } },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } }, storageClassName: "none" },
});

export function client(get: () => Cluster): void {
  suite("the client on a real API server", () => {
    let kube: KubeClient;
    before(() => {
      kube = new KubeClient({ account: openAccount({ kubeconfig: get().kubeconfig }) });
    });
    after(async () => {
      const { items } = await kube.list(schema, CLAIMS, { query: selector });
      for (const { metadata } of items) await kube.remove(`${CLAIMS}/${metadata.name}`, { uid: metadata.uid }, 0);
      await kube.close();
    });

    test("a second create finds the object, and a delete leaves an object of another uid alone", async () => {
      const first = await kube.create(schema, CLAIMS, claim("twice"));
      const second = await kube.create(schema, CLAIMS, claim("twice"));
      assert.deepEqual([first.made, second.made], [true, false]);
      assert.equal(second.object.metadata.uid, first.object.metadata.uid);
      await kube.remove(`${CLAIMS}/twice`, { uid: "00000000-0000-0000-0000-000000000000" }, 0);
      assert.equal((await kube.find(schema, `${CLAIMS}/twice`))?.metadata.uid, first.object.metadata.uid);
      await kube.remove(`${CLAIMS}/twice`, { uid: first.object.metadata.uid }, 0);
      await kube.remove(`${CLAIMS}/twice`, { uid: first.object.metadata.uid }, 0);
    });

    test("edits of many writers all hold", async () => {
      await kube.create(schema, CLAIMS, claim("edited"));
      const keys = ["a", "b", "c", "d", "e"];
      const note = (key: string) =>
        kube.edit(schema, `${CLAIMS}/edited`, () => ({ metadata: { annotations: { [key]: "yes" } } }));
      await Promise.all(keys.map(note));
      const seen = await kube.find(schema, `${CLAIMS}/edited`);
      assert.deepEqual(
        keys.filter((key) => seen?.metadata.annotations?.[key] !== "yes"),
        [],
      );
    });

    test("a list has all pages, and a mirror hears of changes before and after a restart of the API server", async () => {
      const names = Array.from({ length: 520 }, (_, index) => `many-${index}`);
      for (let at = 0; at < names.length; at += 20)
        await Promise.all(names.slice(at, at + 20).map((name) => kube.create(schema, CLAIMS, claim(name))));
      assert.ok((await kube.list(schema, CLAIMS, { query: selector })).items.length >= names.length);
      const mirror = new Mirror({ client: kube, path: CLAIMS, ...selector });
      mirror.start();
      try {
        const heard = (name: string): Promise<void> =>
          new Promise((resolve) => {
            mirror.onChange(name, resolve);
          });
        const before = heard("before");
        await kube.create(schema, CLAIMS, claim("before"));
        await before;
        const { apiServer, ready } = get().control;
        await apiServer.stop("SIGKILL");
        const after = heard("after");
        const made = kube.create(schema, CLAIMS, claim("after"));
        apiServer.start();
        await ready();
        await made;
        await after;
      } finally {
        await mirror.stop();
      }
    });
  });
}
