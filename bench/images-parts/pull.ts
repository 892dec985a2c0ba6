/** Pulling an image from Debian's registry on loopback, against `skopeo copy` and `umoci unpack` of the same image. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseReference } from "../../src/contract/image-reference.ts";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { Puller } from "../../src/node/images/puller.ts";
import { createRegistries } from "../../src/registry/registries.ts";
import { debianEnv, unpackedDebian } from "../../test/debian-packages.ts";
import { startDebianRegistry, USER } from "../../test/registry/debian-registry.ts";
import { addImage, startFakeRegistry } from "../../test/registry/fake-registry.ts";
import { gzip } from "../../test/registry/pull-place.ts";
import { percentiles, table } from "../measure.ts";
import { makeLayer, timed } from "./layers.ts";

const LAYERS = 5;
const IMAGE_BYTES_MAX = 4 * 1024 ** 3;
const TOOLS = ["skopeo", "umoci", "libgpgme11", "libassuan0", "libgpg-error0"];

export async function pullAgainstSkopeo(driver: LocalDriver, dir: string, mb: number, rounds: number): Promise<void> {
  const tools = unpackedDebian("skopeo-umoci", TOOLS);
  const registry = await startDebianRegistry();
  if (tools === null || "reason" in registry) {
    console.log(`No pull is measured: ${"reason" in registry ? registry.reason : "skopeo and umoci are not there"}.`);
    if (!("reason" in registry)) await registry[Symbol.asyncDispose]();
    return;
  }
  const source = await startFakeRegistry();
  const credentials = () => ({ username: USER.name, password: USER.password });
  const registries = createRegistries({
    ...{ privateAddresses: true, allowed: null, mirrors: [], plainHttp: [], credentials },
  });
  const puller = new Puller({
    ...{ dir: join(dir, "downloads"), registries, bytesMax: IMAGE_BYTES_MAX },
    images: async () => driver.capabilities.images,
  });
  try {
    const layers = Array.from({ length: LAYERS }, (_, at) => makeLayer(dir, Math.ceil(mb / LAYERS), `layer-${at}`));
    addImage(source, "bench/large:1", { layers, config: {}, pack: gzip });
    await registry.push(source, "bench/large:1");
    const name = `${registry.host}/bench/large:1`;
    const reference = parseReference(name);
    if (!reference) throw new Error(`${name} is no reference`);
    const times: { pull: number[]; tools: number[] } = { pull: [], tools: [] };
    for (let round = 0; round < rounds; round++) {
      const request = { workspace: "main", reference, credentials };
      const { signal } = new AbortController();
      const began = performance.now();
      const pulled = await puller.pull(request, { signal }, async (each) => each);
      times.pull.push(performance.now() - began);
      await driver.capabilities.images.remove(pulled.name);
      const out = join(dir, "skopeo");
      mkdirSync(out);
      times.tools.push(await timed(() => withTools(tools, out, name)));
      rmSync(out, { recursive: true });
    }
    const [pullMs, toolsMs] = [percentiles(times.pull).p50Ms, percentiles(times.tools).p50Ms];
    const row = { "pull ms": pullMs, "skopeo + umoci ms": toolsMs, ratio: pullMs / toolsMs };
    table(`a pull of ${mb} MB in ${LAYERS} layers from a registry on loopback, medians of ${rounds}`, [row]);
  } finally {
    await puller.stop();
    await source[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
  }
}

function withTools(tools: string, out: string, name: string): void {
  const env = { ...debianEnv(tools), HOME: out, XDG_RUNTIME_DIR: out };
  const from = ["--src-tls-verify=false", "--src-creds", `${USER.name}:${USER.password}`, `docker://${name}`];
  execFileSync("skopeo", ["--insecure-policy", "copy", "-q", ...from, `oci:${out}/image:1`], { env });
  execFileSync("umoci", ["unpack", "--image", `${out}/image:1`, `${out}/bundle`], { env, stdio: "ignore" });
}
