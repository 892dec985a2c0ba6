/** Docker's own client against the platform's registry; part of the long run, because it starts an engine for it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { debianEnv } from "../debian-packages.ts";
import { LONG } from "../long.ts";
import { startTestPlatform } from "../platform.ts";
import { addImage, startFakeRegistry } from "../registry/fake-registry.ts";
import { bottom, gzip } from "../registry/pull-place.ts";
import { DOCKER_MISSING, findDocker } from "./binaries.ts";
import { startEngine } from "./engine.ts";

const root = LONG ? findDocker() : null;
const skip = LONG ? (root === null ? DOCKER_MISSING : false) : "part of the long run";

test("docker login, push and pull", { skip }, async (t) => {
  const engine = await startEngine(root ?? "/");
  t.after(() => engine.stop());
  await using platform = await startTestPlatform();
  await using source = await startFakeRegistry();
  const home = mkdtempSync(join(tmpdir(), "docker-home-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const env = { ...debianEnv(root ?? "/"), DOCKER_HOST: engine.host, HOME: home };
  const docker = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)("docker", args, { env })).stdout;
  const theirs = `${source.host}/acme/tool:1`;
  const ours = `${new URL(platform.url).host}/main/tool:1`;
  addImage(source, "acme/tool:1", { layers: [bottom], pack: gzip, config: { Cmd: ["/x"] } });
  await docker("pull", theirs);
  await docker("tag", theirs, ours);
  await assert.rejects(docker("push", ours), /unauthorized|Sign in first/i);
  assert.match(await docker("login", new URL(platform.url).host, "-u", "any", "-p", platform.apiKey), /Succeeded/);
  const [, digest] = /digest: (sha256:[0-9a-f]{64})/.exec(await docker("push", ours)) ?? [];
  const { body } = await platform.call("GET", "/images/sandbox/tool");
  assert.deepEqual([body.spec.tags[0].name, body.spec.tags[0].digest], ["1", digest]);
  await docker("rmi", theirs, ours);
  assert.match(await docker("pull", ours), new RegExp(`Digest: ${digest}`));
});
