/** Images that kubelets pull: from a private registry with the credentials of a workspace, and from Berth itself. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, suite, test } from "node:test";
import { smallBase } from "../../docker/small-base.ts";
import { addImage, type FakeRegistry, startFakeRegistry } from "../../registry/fake-registry.ts";
import { pushImage } from "../../registry/push-image.ts";
import { sandboxdBinary } from "../../sandboxd-binary.ts";
import type { Cluster } from "../world/cluster.ts";
import { moved } from "../world/images.ts";
import { addPlainRegistry } from "../world/registry.ts";
import { until } from "../world/until.ts";
import { API_KEY, expectBody, type Installation, PUBLIC_HOST, PUBLIC_URL } from "./installation.ts";
import { Workloads } from "./workloads.ts";

const LOGIN = { USERNAME: "reader", PASSWORD: "s3:cret" };
const USER = { name: "tool", ids: "1234:1235", home: "/var/tmp" };
const TAR_BYTES_MAX = 512 * 1024 ** 2;
const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

interface Failure {
  status: string;
  events?: { message?: string }[];
}

export function images(cluster: () => Cluster, get: () => Installation): void {
  suite("images on a real cluster", () => {
    const workloads = new Workloads(cluster, get);
    let registry: FakeRegistry;
    before(async () => {
      registry = await startFakeRegistry();
      addImage(registry, "team/tool:1", { layers: await layersOf(cluster().dir), config: CONFIG });
      registry.intercept = (req, res) => {
        if (req.headers.authorization === basic(LOGIN.USERNAME, LOGIN.PASSWORD)) return false;
        res.writeHead(401, { "www-authenticate": 'Basic realm="tools"' }).end();
        return true;
      };
      for (const host of [registry.host, PUBLIC_HOST]) addPlainRegistry(cluster().dir, host);
    });
    after(() => registry?.[Symbol.asyncDispose]());
    afterEach(async () => {
      for (const name of ["private", "pushed"]) await get().call("DELETE", `/v0/sandboxes/${name}`);
      await until("no pod is left", async () => (await workloads.pods()).length === 0);
    });

    const connect = (name: string, host: string, secret: object) => {
      const spec = { integration: "registry", config: { registry: host }, secret };
      return expectBody(get().call("POST", "/v0/integrations/connections", { metadata: { name }, spec }));
    };
    const runtimeOf = (image: string) => ({ runtime: { image, memory: 256, imagePullPolicy: "Always" } });
    /** The image's user and folder, as a process of the sandbox has them. */
    const isOfImage = async (sandbox: string): Promise<void> => {
      const said = await workloads.run(sandbox, "echo $(id -u):$(id -g) $FROM_IMAGE; pwd");
      assert.equal(said, `${USER.ids} yes\n${USER.home}\n`);
    };

    test("a private image is pulled with the credentials of its workspace alone, and its processes have its user", async () => {
      const { call } = get();
      await connect("tools", registry.host, LOGIN);
      const image = `${registry.host}/team/tool:1`;
      await workloads.makeSandbox("private", runtimeOf(image));
      await isOfImage("private");
      await expectBody(call("POST", "/v0/workspaces", { name: "strangers" }));
      const stranger = { metadata: { name: "stranger" }, spec: runtimeOf(image) };
      const refused = await call<Failure>("POST", "/v0/sandboxes", stranger, { "x-service-workspace": "strangers" });
      assert.match(JSON.stringify(refused.body), /cannot be pulled.*(401|authorization|denied)/i);
    });

    test("an image that was pushed to Berth runs as a pod, by its name in the workspace", async () => {
      await using _ = await get().openPublicAddress();
      registry.intercept = null;
      await pushImage(PUBLIC_URL, registry, "team/tool:1", { authorization: basic("any", API_KEY), to: "main/own:1" });
      await connect("own", PUBLIC_HOST, { USERNAME: "any", PASSWORD: API_KEY });
      await workloads.makeSandbox("pushed", runtimeOf("own:1"));
      await isOfImage("pushed");
    });
  });
}

const CONFIG = { User: USER.name, WorkingDir: USER.home, Env: ["PATH=/usr/bin:/bin", "FROM_IMAGE=yes"] };

/** Programs of this machine with the libraries that they and the daemon need, as tars. */
async function layersOf(dir: string): Promise<Buffer[]> {
  const work = mkdtempSync(join(dir, "private-image-"));
  try {
    const base = smallBase({ dir: work, guests: [await sandboxdBinary()] });
    const [root = ""] = base.parts.find(({ at }) => at === "/")?.lowers ?? [];
    appendFileSync(join(root, "etc/passwd"), `${USER.name}:x:${USER.ids}::${USER.home}:/bin/sh\n`);
    const tar = (layer: readonly string[]): Buffer => {
      const owner = ["--numeric-owner", "--owner=0", "--group=0"];
      return execFileSync("tar", ["--create", "--file=-", ...owner, ...layer], { maxBuffer: TAR_BYTES_MAX });
    };
    return base.parts.flatMap(({ at, lowers }) => lowers.map((lower) => tar(moved(lower, at))));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
