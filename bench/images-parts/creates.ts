/** Sandboxes from an image of a registry, cold and warm, and a build that uses every step again. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Entry, tar } from "../../test/image-archive.ts";
import { startTestPlatform } from "../../test/platform.ts";
import { addImage, startFakeRegistry } from "../../test/registry/fake-registry.ts";
import { gzip } from "../../test/registry/pull-place.ts";
import { percentiles, table } from "../measure.ts";
import { makeLayer, timed } from "./layers.ts";

const WARM_ROUNDS = 10;
const LOOK_MS = 10;

const program = (name: string): Entry => ({ path: `bin/${name}`, content: readFileSync(`/bin/${name}`), mode: 0o755 });

export async function createsAndBuilds(dir: string, mb: number): Promise<void> {
  const registry = await startFakeRegistry();
  addImage(registry, "bench/large:1", {
    layers: [tar([program("sh"), program("cat")]), makeLayer(dir, mb)],
    pack: gzip,
    config: { Env: ["PATH=/bin"] },
  });
  const image = `${registry.host}/bench/large:1`;
  const platform = await startTestPlatform({
    ...{ driver: "real", dataDir: join(dir, "platform"), config: { registries: registry.host } },
  });
  const { call } = platform;
  const create = async (name: string): Promise<void> => {
    const body = { metadata: { name }, spec: { runtime: { image, memory: 256 } } };
    const answer = await call("POST", "/sandboxes", { body });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    await call("DELETE", `/sandboxes/${name}`);
  };
  const build = async (): Promise<void> => {
    const body = { name: "built", resourceType: "sandbox" };
    const asked = await call("POST", "/images?upload=true", { body });
    const dockerfile = `FROM ${image}\nRUN echo 1 > /one\nRUN echo 2 > /two\nCOPY Dockerfile /three\n`;
    const archive = tar([{ path: "Dockerfile", content: dockerfile }]);
    await fetch(asked.headers.get("x-service-upload-url") ?? "", { method: "PUT", body: new Uint8Array(archive) });
    for (;;) {
      const { status } = (await call("GET", "/images/sandbox/built")).body.metadata;
      if (status === "DEPLOYED") return;
      assert.notEqual(status, "FAILED");
      await pause(LOOK_MS);
    }
  };
  try {
    const coldMs = await timed(() => create("cold"));
    const warm: number[] = [];
    for (let round = 0; round < WARM_ROUNDS; round++) warm.push(await timed(() => create(`warm-${round}`)));
    const warmMs = percentiles(warm).p50Ms;
    table(`create and delete of a sandbox from an image of ${mb} MB`, [
      { "cold ms (pulls)": coldMs, "warm ms": warmMs, ratio: warmMs / coldMs },
    ]);
    const firstMs = await timed(build);
    const again: number[] = [];
    for (let round = 0; round < WARM_ROUNDS; round++) again.push(await timed(build));
    const againMs = percentiles(again).p50Ms;
    table("a build of two RUN and a COPY on this image", [
      { "first ms": firstMs, "again, every step cached, ms": againMs, ratio: againMs / firstMs },
    ]);
  } finally {
    await platform.stop();
    await registry[Symbol.asyncDispose]();
  }
}
