/** Without address translation a workload reaches the internet through the proxy that its variables name. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { LocalMachine, localDriverMissing, run } from "./machine.ts";

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
