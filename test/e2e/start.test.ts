/** What a stranger sees when the server starts, refuses to start, and stops. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { runBerth, type ServerProcess, spawnBerth, startServer } from "../berth-process.ts";

let dataDir: string;
const servers: ServerProcess[] = [];

const start = async (options: Partial<Parameters<typeof startServer>[0]> = {}): Promise<ServerProcess> => {
  const server = await startServer({ dataDir, ...options });
  servers.push(server);
  return server;
};

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "berth-start-"));
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop("SIGKILL")));
  rmSync(dataDir, { recursive: true, force: true });
});

describe("starting", () => {
  test("the first start shows the key once, the second where it is", async () => {
    const first = await start();
    const key = first.stderr().match(/API key {4}(bk_\S+)/)?.[1];
    assert.ok(key);
    const file = join(dataDir, "credentials.json");
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), { url: first.url, workspace: "main", apiKey: key });
    const answer = await fetch(`${first.url}/v0/drives`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(answer.status, 200);
    await first.stop();

    // The variable is for the first start; the command line uses it too, so it may well be set now.
    const second = await start({ env: { BERTH_WORKSPACE: "elsewhere", BERTH_URL: "http://127.0.0.1:9" } });
    assert.ok(second.stderr().includes(`API key    in ${file}`));
    assert.equal(JSON.parse(readFileSync(file, "utf8")).workspace, "main");
    assert.ok(!second.stderr().includes(key));
    const again = await fetch(`${second.url}/v0/drives`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(again.status, 200);
  });

  test("a price file that cannot be used is told with its setting, before anything is made", async () => {
    const file = join(dataDir, "prices");
    const rows = [
      ["BERTH_MODEL_PRICES", "not JSON", /^berth: model_prices \(BERTH_MODEL_PRICES, --model-prices\): .*JSON/],
      ["BERTH_MODEL_PRICES", '{"openai":{"gpt":{"input":1}}}', /^berth: model_prices .*: at openai\.gpt\.input: /],
      ["BERTH_PRICE_FILE", "price = 3", /^berth: price_file .*must be a list, not a number/],
      ["BERTH_PRICE_FILE", null, /^berth: price_file .*: ENOENT/],
    ] as const;
    for (const [name, text, told] of rows) {
      rmSync(file, { force: true });
      if (text !== null) writeFileSync(file, text);
      const { code, stderr } = await runBerth(["up", "--data", join(dataDir, "data")], { env: { [name]: file } });
      assert.match(stderr, told);
      assert.equal(code, 2);
    }
    assert.equal(existsSync(join(dataDir, "data")), false);
  });

  test("another secret key than the first one is refused", async () => {
    await (await start({ env: { BERTH_SECRET_KEY: "the first key, which is long enough" } })).stop();
    const refused = await spawnBerth(["up"], {
      env: { HOME: dataDir, PORT: "0", BERTH_DATA: dataDir, BERTH_SECRET_KEY: "another key, which is long enough too" },
    }).ended;
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /sealed with the key [0-9a-f]{16}, but BERTH_SECRET_KEY is [0-9a-f]{16}/);
    const without = await spawnBerth(["up", "--port", "0", "--data", dataDir]).ended;
    assert.notEqual(without.code, 0);
    assert.match(without.stderr, /sealed with the key [0-9a-f]{16}, but there is no \S+secret\.key/);
    assert.equal(existsSync(join(dataDir, "secret.key")), false, "a key that no database has taken is kept nowhere");
  });

  test("a database that cannot be opened leaves no secret key behind, which would refuse every backup", async (t) => {
    const hangsUp = createServer((socket) => socket.destroy());
    await new Promise<void>((done) => hangsUp.listen(0, "127.0.0.1", done));
    t.after(() => hangsUp.close());
    const { port } = hangsUp.address() as AddressInfo;
    const failed = await spawnBerth(["up", "--port", "0", "--data", dataDir], {
      env: { DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/nothing` },
    }).ended;
    assert.notEqual(failed.code, 0);
    assert.equal(existsSync(join(dataDir, "secret.key")), false, failed.stderr);
  });

  test("a server on every address says so; a second one on its folder or its port is refused and told who holds it", async (t) => {
    const first = await start({ env: { HOST: "0.0.0.0", BERTH_INSECURE_HTTP: "true" } });
    const { hostname, port } = new URL(first.url);
    assert.match(first.stderr(), /listens on every address \(0\.0\.0\.0\)[^\n]*\n[^\n]*BERTH_PUBLIC_URL/);
    const { url } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
    const metadata = await fetch(`http://127.0.0.1:${port}/.well-known/oauth-authorization-server`);
    const { issuer } = (await metadata.json()) as { issuer: string };
    for (const address of [first.url, url, issuer, first.stderr()]) assert.doesNotMatch(address, /\/\/0\.0\.0\.0/);
    assert.deepEqual([new URL(url).hostname, new URL(issuer).hostname], [hostname, hostname]);

    const sameFolder = await spawnBerth(["up", "--port", "0", "--data", dataDir]).ended;
    assert.equal(sameFolder.code, 5);
    assert.match(sameFolder.stderr, new RegExp(`in use by another Berth \\(pid ${first.child.pid}, started `));
    assert.match(sameFolder.stderr, /BERTH_DATA/);

    const other = mkdtempSync(join(tmpdir(), "berth-start-"));
    t.after(() => rmSync(other, { recursive: true, force: true }));
    const samePort = await spawnBerth(["up", "--port", port, "--data", other]).ended;
    assert.equal(samePort.code, 5);
    assert.match(samePort.stderr, new RegExp(`Port ${port} on 127.0.0.1 is in use`));
  });
});

describe("stopping", () => {
  test("SIGTERM lets a request in flight finish and exits 0; a key that the operator brings is used and not shown", async () => {
    const key = "operator-key-0123456789";
    const server = await start({ env: { BERTH_API_KEY: key } });
    const body = JSON.stringify({ metadata: { name: "slow" }, spec: {} });
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    await once(socket, "connect");
    const half = body.slice(0, 10);
    socket.write(
      `POST /v0/drives HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n${half}`,
    );
    const [interim] = (await once(socket, "data")) as [Buffer];
    assert.match(interim.toString(), /^HTTP\/1.1 100/); // the request has arrived
    server.child.kill("SIGTERM");
    await server.printed(/"stopping"/);
    const refused = await fetch(`${server.url}/healthz`).then(
      () => false,
      () => true,
    );
    assert.ok(refused, "no new connection is accepted");
    socket.write(body.slice(10));
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1.1 200/);
    const ended = await server.ended;
    assert.deepEqual([ended.code, ended.signal], [0, null]);
    assert.ok(!(ended.stdout + ended.stderr).includes(key));
  });

  test("npm start passes SIGTERM on to the server", async () => {
    const npm = spawn("npm", ["start"], {
      cwd: join(import.meta.dirname, "../.."),
      env: { PATH: process.env.PATH, HOME: dataDir, PORT: "0", BERTH_DATA: dataDir },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let printed = "";
    const url = await new Promise<string>((resolve, reject) => {
      npm.once("exit", (code) => reject(new Error(`npm ended with ${code}: ${printed}`)));
      npm.stderr.on("data", (chunk) => {
        printed += chunk;
        const match = printed.match(/API {8}(\S+)\/v0[\s\S]*Ctrl-C/);
        if (match?.[1]) resolve(match[1]);
      });
    });
    npm.kill("SIGTERM");
    const [code] = (await once(npm, "exit")) as [number | null];
    assert.equal(code, 0);
    await assert.rejects(fetch(`${url}/healthz`));
  });

  test("the same signal twice at once, as npm passes it on, is one wish to stop, told as a line of JSON", async () => {
    const server = await start();
    server.child.kill("SIGINT");
    server.child.kill("SIGINT");
    const ended = await server.ended;
    assert.deepEqual([ended.code, ended.signal], [0, null]);
    const lines = ended.stdout.trim().split("\n");
    const said = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    // A server without root also says which limits do not hold.
    assert.deepEqual(
      said.filter((msg) => !msg.startsWith("some limits of workloads")),
      ["stopping"],
    );
  });
});

describe("configuration", () => {
  const refusals: [what: string, args: string[], env: Record<string, string>, says: RegExp][] = [
    ["an unknown flag", ["--prot", "1"], {}, /unknown flag --prot\. Did you mean port \(PORT, --port\)\?/],
    ["an unknown short flag", ["-q"], {}, /unknown flag --q/],
    ["a flag without its value", ["--port"], {}, /--port needs a value/],
    ["a word that is not a flag", ["now"], {}, /unexpected argument 'now'/],
    ["an unknown variable", [], { BERTH_DATABSE_URL: "x" }, /BERTH_DATABSE_URL\. Did you mean database_url/],
    ["a wrong port", ["--port", "80a"], {}, /port \(PORT, --port\): /],
    ["a wrong database", [], { DATABASE_URL: "mysql://x" }, /must start with postgres:\/\//],
    ["plain HTTP for other machines", ["--host", "0.0.0.0"], {}, /insecure_http/],
    ["a certificate without its key", ["--tls-cert", "x"], {}, /tls_cert and tls_key go together/],
    ["a missing file", ["--config", "nowhere.toml"], {}, /nowhere\.toml does not exist/],
  ];
  for (const [what, args, env, says] of refusals) {
    test(`${what} is refused with exit code 2`, async () => {
      const ended = await runBerth(["up", "--data", dataDir, ...args], { env });
      assert.equal(ended.code, 2);
      assert.match(ended.stderr, says);
      assert.doesNotMatch(ended.stderr, /\n\s+at /);
    });
  }

  test("an unknown key of the file is named together with the file", async () => {
    const file = join(dataDir, "berth.toml");
    writeFileSync(file, "prt = 1\n");
    const ended = await runBerth(["up", "--data", dataDir]);
    assert.equal(ended.code, 2);
    assert.ok(ended.stderr.includes(`${file}: unknown key 'prt'. Did you mean port`), ended.stderr);
  });

  test("--check-config shows what is in force: flags beat the environment, which beats the file; no secrets", async () => {
    writeFileSync(join(dataDir, "berth.toml"), 'port = 1\nregion = "file"\nplan = "file"\n');
    const ended = await runBerth(["up", "--data", dataDir, "--port", "3", "--check-config"], {
      env: { PORT: "2", BERTH_REGION: "env", BERTH_API_KEY: "a-secret-of-the-operator" },
    });
    assert.equal(ended.code, 0);
    for (const line of ["port = 3", 'region = "env"', 'plan = "file"', 'api_key = "***"', "database_url = null"])
      assert.ok(ended.stdout.split("\n").includes(line), line);
    assert.ok(!ended.stdout.includes("a-secret-of-the-operator"));
  });

  test("--help lists every setting with its variable", async () => {
    const ended = await runBerth(["up", "--help"]);
    assert.equal(ended.code, 0);
    for (const word of ["--database-url", "DATABASE_URL", "--check-config", "Examples:"])
      assert.ok(ended.stdout.includes(word), word);
  });
});
