/** Without address translation a workload reaches the internet through the proxy that its variables name. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import { trustOf } from "../../src/kinds/workload/trust.ts";
import { testAuthority } from "../tls-credential.ts";
import { LocalMachine, localDriverMissing } from "./machine.ts";
import { run } from "./run.ts";

/** What a program of each language has to do; all of them know the proxy by its variables only. */
const PROGRAMS: Record<string, (url: string) => string> = {
  node: (url) => `node -e 'fetch("${url}").then(r => r.text()).then(t => process.stdout.write(t))'`,
  python3: (url) =>
    `python3 -c 'import urllib.request as u, sys; sys.stdout.write(u.urlopen("${url}").read().decode())'`,
  curl: (url) => `curl -s ${url}`,
};

test("programs of a workload find the proxy", { skip: localDriverMissing ?? false }, async (t) => {
  const server = createServer((incoming, response) => response.end(`from outside to ${incoming.headers.host}`));
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const machine = new LocalMachine();
  const driver = await machine.open({
    poolSize: 0,
    egress: { allowed: (host) => host === "allowed.test", resolve: async () => ["127.0.0.1"], onBytes: () => {} },
  });
  t.after(async () => {
    await driver.stop("kill");
    machine.dispose();
  });
  const made = await driver.create({
    uid: "caller",
    name: "box",
    image: "berth/base-image:latest",
    env: {},
    limits: { memoryMb: 512, cpus: 1 },
    network: "outbound",
  });
  const proxy = (await run(made, "echo $HTTP_PROXY")).output;
  if (proxy === "\n") return t.skip("addresses are translated on this machine");
  assert.equal((await run(made, "echo $NODE_USE_ENV_PROXY")).output, "1\n");
  for (const [program, fetching] of Object.entries(PROGRAMS)) {
    if ((await run(made, `command -v ${program}`)).exitCode !== 0) continue;
    const says = program === "node" ? (await run(made, "node --version")).output : "";
    if (/^v(1\d|2[0-3])\./.test(says)) continue; // reads no proxy variables at all
    const { output } = await run(made, fetching(`http://allowed.test:${port}/`));
    assert.equal(output, `from outside to allowed.test:${port}`, program);
  }
});

const SECRET = "sk-never-inside-4711";
const NETWORK = {
  proxy: { routing: [{ destinations: ["api.test"], headers: { "x-key": "{{SECRET:k}}" }, secrets: { k: SECRET } }] },
};

/** Programs that check certificates, each in its own way; `command -v` of the first word decides whether one is tried. */
const TLS_PROGRAMS: Record<string, (url: string) => string> = {
  ...PROGRAMS,
  git: (url) => `git ls-remote ${url} 2>&1; true`,
  // The service is no index of packages; that it was asked is enough.
  npm: (url) => `npm view --registry ${url} --fetch-retries 0 --cache /tmp/npm nothing 2>&1; true`,
  pip3: (url) => `pip3 download --index-url ${url} --retries 0 --no-input --no-cache-dir nothing 2>&1; true`,
  "python3 -c 'import requests' && true": (url) => `python3 -c 'import requests; requests.get("${url}")' 2>&1`,
  // Built with GnuTLS, which reads the system's store alone.
  wget: (url) => `wget -q -O - ${url} 2>&1`,
  // Each session ticket that comes before the end of the input is told with the code once more.
  openssl: (url) =>
    `openssl s_client -proxy 127.0.0.1:988 -connect ${new URL(url).host} -servername api.test -verify_return_error < /dev/null 2>&1 | grep -c -m 1 'Verify return code: 0'`,
};

test("programs of a workload with routes trust its workspace, and never see the secret", {
  skip: localDriverMissing ?? false,
}, async (t) => {
  const [world, workspace] = [testAuthority("world"), testAuthority("workspace")];
  const { certificate: cert, key } = world.credentialOf("api.test");
  const keys = new Set<unknown>();
  const server = createTlsServer({ cert, key }, (incoming, response) => {
    keys.add(incoming.headers["x-key"]);
    response.end("from the service");
  });
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const machine = new LocalMachine();
  const routed = compileNetwork(NETWORK);
  const driver = await machine.open({
    poolSize: 0,
    egress: {
      allowed: () => true,
      resolve: async () => ["127.0.0.1"],
      rules: { of: async () => routed, onChange: () => () => {} },
      credentialOf: async (_, host) => workspace.credentialOf(host),
      authorities: world.certificate,
    },
  });
  t.after(async () => {
    await driver.stop("kill");
    machine.dispose();
  });
  const { env, mounts } = await trustOf(
    { workspace: "w", spec: { network: NETWORK } },
    {
      driver,
      authorities: { trusted: async () => [workspace.certificate] },
      blobs: { makeWorkFolder: async () => mkdtempSync(join(tmpdir(), "berth-trust-")) },
    },
  );
  const made = await driver.create({
    ...{ uid: "routed", name: "box", image: "berth/base-image:latest", env, mounts },
    limits: { memoryMb: 512, cpus: 1 },
    network: "outbound",
  });
  if ((await run(made, "echo $HTTP_PROXY")).output === "\n") return t.skip("addresses are translated on this machine");
  let tried = 0;
  for (const [program, fetching] of Object.entries(TLS_PROGRAMS)) {
    const isThere = program.includes(" ") ? program : `command -v ${program}`;
    if ((await run(made, isThere)).exitCode !== 0) {
      t.diagnostic(`'${program}' fails in the base image here: install what is missing to try its trust`);
      continue;
    }
    keys.clear();
    tried += 1;
    const { output } = await run(made, fetching(`https://api.test:${port}/`));
    if (program === "openssl") assert.equal(output, "1\n");
    else assert.deepEqual([...keys], [SECRET], `${program}: ${output}`);
  }
  assert.ok(tried >= 2, "node and another program are in the base image");
  const search = `grep -rl ${SECRET.slice(0, -1)}[${SECRET.slice(-1)}] /proc/[0-9]*/environ /etc/outbound-trust /run /tmp 2>/dev/null; env`;
  assert.doesNotMatch((await run(made, search)).output, /environ|never-inside/);
});
