/** Images that one server has and another one runs: the parts come from the server that has them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Entry, tar } from "../image-archive.ts";
import { TEST_KEY } from "../platform.ts";
import { addImage, digestOf, startFakeRegistry } from "../registry/fake-registry.ts";
import { pushImage } from "../registry/push-image.ts";
import type { Cluster } from "./cluster.ts";
import { makeSandbox, run, until } from "./use.ts";

const program = (name: string): Entry => ({ path: `bin/${name}`, content: readFileSync(`/bin/${name}`), mode: 0o755 });
const layer = (): Buffer => tar([program("sh"), program("cat"), { path: "etc/base", content: "pulled\n" }]);

export function sharedImages(get: () => Cluster<"a" | "b">): void {
  test("a sandbox at one server runs an image that another one pulled, while the registry is away", async () => {
    const { a, b } = get().members;
    const registry = await startFakeRegistry();
    const reference = `${registry.host}/acme/far:1`;
    try {
      addImage(registry, "acme/far:1", { layers: [layer()], config: { Env: ["PATH=/bin"] } });
      await makeSandbox(a, "far-a", { runtime: { memory: 256, image: reference } });
    } finally {
      await registry[Symbol.asyncDispose]();
    }
    const { metadata } = await makeSandbox(b, "far-b", { runtime: { memory: 256, image: reference } });
    assert.equal(metadata.node, "b");
    assert.equal(await run(b, "far-b", "cat /etc/base"), "pulled");
    for (const name of ["far-a", "far-b"]) await a.call("DELETE", `/sandboxes/${name}`);
  });

  test("an image that is pushed to one server runs at another, and is served there", async () => {
    const { a, b } = get().members;
    const source = await startFakeRegistry();
    const authorization = `Bearer ${TEST_KEY}`;
    try {
      addImage(source, "acme/sent:1", { layers: [layer()], config: { Env: ["PATH=/bin"] } });
      await pushImage(a.url, source, "acme/sent:1", { authorization, to: "main/sent:1" });
      const answer = await fetch(`${b.url}/v2/main/sent/manifests/1`, { headers: { authorization } });
      assert.equal(digestOf(Buffer.from(await answer.arrayBuffer())), source.tags.get("acme/sent:1"));
    } finally {
      await source[Symbol.asyncDispose]();
    }
    const { metadata } = await makeSandbox(b, "sent-b", { runtime: { memory: 256, image: "sent:1" } });
    assert.equal(metadata.node, "b");
    assert.equal(await run(b, "sent-b", "cat /etc/base"), "pulled");
    await b.call("DELETE", "/sandboxes/sent-b");
  });

  test("a sandbox at one server runs an image that another one built, and both serve it", async () => {
    const { a, b } = get().members;
    const asked = await a.call("POST", "/images?upload=true", { body: { name: "made", resourceType: "sandbox" } });
    assert.equal(asked.status, 200, JSON.stringify(asked.body));
    const upload = new URL(asked.headers.get("x-service-upload-url") ?? assert.fail("no address for the archive"));
    const dockerfile = ["FROM service/base-image", "RUN mkdir /opt/x && echo built > /opt/x/y && rm -r /srv", ""].join(
      "\n",
    );
    const sent = await fetch(new URL(upload.pathname + upload.search, a.url), {
      method: "PUT",
      body: tar([{ path: "Dockerfile", content: dockerfile }]),
    });
    assert.equal(sent.status, 200, await sent.text());
    const { spec, metadata: image } = await until(
      async () => (await a.call("GET", "/images/sandbox/made")).body,
      ({ metadata: { status } }) => status === "DEPLOYED" || status === "FAILED",
    );
    assert.equal(image.status, "DEPLOYED", JSON.stringify(image.events));
    const { metadata } = await makeSandbox(b, "made-b", { runtime: { memory: 256, image: "made" } });
    assert.equal(metadata.node, "b");
    assert.equal(await run(b, "made-b", "cat /opt/x/y; test -e /srv || echo gone"), "built\ngone");
    for (const member of [a, b]) {
      const headers = { authorization: `Bearer ${TEST_KEY}` };
      const answer = await fetch(`${member.url}/v2/main/made/manifests/latest`, { headers });
      const manifest = Buffer.from(await answer.arrayBuffer());
      assert.equal(digestOf(manifest), spec.tags[0].digest);
      // The base is no part of it: a server of the platform gets the image, an engine without that base does not.
      const blob = `${member.url}/v2/main/made/blobs/${JSON.parse(manifest.toString()).config.digest}`;
      const docker = await fetch(blob, { headers: { ...headers, "user-agent": "docker/26.1" } });
      assert.equal(docker.status, 403);
      assert.match(await docker.text(), /DENIED.*own base image.*FROM debian/s);
      assert.equal((await fetch(blob, { headers: { ...headers, "user-agent": "berth" } })).status, 200);
    }
    await b.call("DELETE", "/sandboxes/made-b");
  });
}
