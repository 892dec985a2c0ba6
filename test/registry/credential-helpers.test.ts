/** Docker's credential helpers, which the operator's configuration names: real programs, and a registry that asks. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { NO_CREDENTIALS, parseDockerConfig } from "../../src/registry/credentials.ts";
import { dockerConfigFile } from "../../src/registry/docker-config-file.ts";
import { addImage } from "./fake-registry.ts";
import { bottom, place, refusal, registryFor, skip } from "./pull-place.ts";

/** A folder of programs that is on the PATH. */
function programs(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-helpers-"));
  const before = process.env.PATH;
  process.env.PATH = `${folder}:${before}`;
  t.after(() => {
    process.env.PATH = before;
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

function helper(folder: string, name: string, lines: string): void {
  const file = join(folder, `docker-credential-${name}`);
  writeFileSync(file, `#!/bin/sh\nread -r registry || true\necho "$1 $registry" >> ${folder}/asked\n${lines}\n`);
  chmodSync(file, 0o755);
}

test("a helper of the operator's file gives credentials; a failing one is told without its secrets", {
  skip,
}, async (t) => {
  const folder = programs(t);
  const registry = await registryFor(t);
  addImage(registry, "acme/tool:1", { layers: [bottom] });
  const auth = Buffer.from("ada:secret").toString("base64");
  registry.intercept = (req, res) => {
    if (req.headers.authorization === `Basic ${auth}`) return false;
    res.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
    return true;
  };
  const file = join(folder, "config.json");
  const write = (config: object): void => writeFileSync(file, JSON.stringify(config));
  const errors: string[] = [];
  const own = dockerConfigFile(file, (error) => errors.push(String(error)));
  const { pull } = await place(t, { credentials: own });
  const name = `${registry.host}/acme/tool:1`;

  helper(folder, "known", `echo '{"ServerURL":"x","Username":"ada","Secret":"secret"}'`);
  helper(folder, "empty", "echo 'credentials not found in native keychain'; exit 1");
  helper(folder, "broken", "echo 'hidden-word'; echo 'hidden-word' >&2; exit 3");
  helper(folder, "token", `echo '{"Username":"<token>","Secret":"refresh"}'`);

  write({ credHelpers: { [`https://${registry.host}/`]: "known" }, credsStore: "broken" });
  await pull(name);
  assert.match(readFileSync(join(folder, "asked"), "utf8"), new RegExp(`^(get ${registry.host}\n)+$`));
  assert.deepEqual(errors, []);

  write({ credsStore: "empty", auths: { [registry.host]: { auth } } });
  assert.deepEqual(await own(registry.host), { username: "ada", password: "secret" });
  write({ credsStore: "token" });
  assert.deepEqual(await own("docker.io"), { username: "", password: "", identityToken: "refresh" });
  assert.match(readFileSync(join(folder, "asked"), "utf8"), /get https:\/\/index\.docker\.io\/v1\/\n$/);

  for (const wrong of ["broken", "absent", "../known", "a b"]) {
    write({ credsStore: wrong });
    assert.equal(await own(registry.host), null, wrong);
  }
  assert.equal(errors.length, 4);
  assert.doesNotMatch(errors.join(), /hidden-word/);

  const asked = readFileSync(join(folder, "asked"), "utf8");
  const tenants = parseDockerConfig(JSON.stringify({ credsStore: "known", credHelpers: { [registry.host]: "known" } }));
  assert.equal(await tenants(registry.host), null, "a tenant's configuration starts no program");
  const other = await place(t, { credentials: NO_CREDENTIALS });
  assert.equal((await refusal(other.pull(name, tenants)))[0], "unauthorized");
  assert.equal(readFileSync(join(folder, "asked"), "utf8"), asked);
});
