/** Pulls of one workspace leave room for those of others. */
import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { PlatformError } from "../../src/contract/errors.ts";
import { NO_CREDENTIALS, parseDockerConfig } from "../../src/registry/credentials.ts";
import { tar } from "../image-archive.ts";
import { addImage, digestOf } from "./fake-registry.ts";
import { bottom, place, refusal, registryFor, skip } from "./pull-place.ts";

test("a refusal does not tell whose credentials are used", { skip }, async (t) => {
  const [registry, { pull }] = [await registryFor(t), await place(t)];
  const auth = Buffer.from("operator:secret").toString("base64");
  const known = parseDockerConfig(JSON.stringify({ auths: { [registry.host]: { auth } } }));
  for (const challenge of ["Basic", `Bearer realm="http://${registry.host}/token"`]) {
    registry.intercept = (_, res) => Boolean(res.writeHead(401, { "www-authenticate": challenge }).end());
    const [reason, message] = await refusal(pull(`${registry.host}/acme/tool:1`, known));
    assert.equal(reason, "unauthorized");
    assert.match(message, /refuses the credentials/);
    assert.doesNotMatch(message, /operator|secret/);
  }
});

test("one workspace's pulls wait for each other, are bounded, and leave room for other workspaces", {
  skip,
}, async (t) => {
  const [registry, { pull }] = [await registryFor(t), await place(t)];
  registry.intercept = (req) => req.url?.includes("/held/") ?? false;
  const refused: unknown[] = [];
  for (let index = 0; index < 60; index++)
    void pull(`${registry.host}/held/n${index}:1`, NO_CREDENTIALS, "many").catch((error) => refused.push(error));
  addImage(registry, "acme/tool:1", { layers: [bottom] });
  await pull(`${registry.host}/acme/tool:1`, NO_CREDENTIALS, "other");
  const [first] = refused;
  assert.ok(first instanceof PlatformError, "too many waiting pulls are refused");
  assert.deepEqual([first.code, first.status], ["too_many_requests", 429]);
  assert.ok(registry.seen.filter((each) => each.includes("/held/")).length <= 2, "two at a time");
});

test("the bytes of a running pull count as taken", { skip }, async (t) => {
  const [registry, { pull }] = [await registryFor(t), await place(t, {}, 2 ** 60)];
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize < 4 * 2 ** 30) return t.skip("the disk is nearly full: its free space means nothing here");
  const size = Math.floor(0.7 * (bavail * bsize - 512 * 2 ** 20));
  const large = (content: string) => ({
    layers: [tar([{ path: "large", content }])],
    manifest: (m: Record<string, unknown>) => ({ ...m, layers: [{ ...(m.layers as object[])[0], size }] }),
  });
  const layers = ["1", "2"].map((content) => {
    const image = large(content);
    addImage(registry, `large:${content}`, image);
    return digestOf(image.layers[0] ?? Buffer.alloc(0));
  });
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  registry.intercept = (req) => {
    const which = layers.findIndex((digest) => req.url?.endsWith(digest));
    begun[which]?.resolve();
    return which >= 0;
  };
  const first = pull(`${registry.host}/large:1`);
  first.catch(() => {}); // it ends with the puller
  await Promise.race([begun[0]?.promise, first]);
  const both = begun[1]?.promise.then(() => assert.fail("two pulls begin that the disk has no room for"));
  const [reason, message] = await refusal(Promise.race([pull(`${registry.host}/large:2`), both]));
  assert.equal(reason, "too_large", message);
});
