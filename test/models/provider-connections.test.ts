/** The connections to providers themselves: TLS, what is kept and for how long, and what happens when one is stale. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { startGateway, type TestGateway } from "./gateway-harness.ts";
import { sendJson, startUpstream } from "./upstream-server.ts";

const CHAT = { messages: [{ role: "user", content: "Hi" }] };
const ANSWER = JSON.stringify({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } });

const post = (gateway: TestGateway, body: unknown = CHAT, model = "m"): Promise<Response> =>
  fetch(`${gateway.url(model)}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

const codeOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { code: string } }).error.code;

const portOf = (server: { address(): AddressInfo | string | null }): number => (server.address() as AddressInfo).port;

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const NO_OPENSSL = hasOpenssl() ? false : "openssl is not installed";
const TRUSTED = getCACertificates("default");
let secure: TlsServer;
let resumed: boolean[] = [];
let sockets: Set<Socket>;

before(async () => {
  if (NO_OPENSSL) return;
  const dir = mkdtempSync(join(tmpdir(), "berth-provider-"));
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const args = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    ...subject,
    "-keyout",
    key,
    "-out",
    cert,
  ];
  execFileSync("openssl", args, { stdio: "ignore" });
  sockets = new Set();
  secure = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (req, res) => {
    sockets.add(req.socket);
    req.resume().on("end", () => {
      res.writeHead(200, { "content-type": "application/json" });
      res.end(ANSWER);
    });
  });
  secure.on("secureConnection", (socket: TLSSocket) => resumed.push(socket.isSessionReused()));
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  setDefaultCACertificates([...TRUSTED, readFileSync(cert, "utf8")]);
  rmSync(dir, { recursive: true });
});

after(() => {
  if (NO_OPENSSL) return;
  setDefaultCACertificates(TRUSTED);
  secure.closeAllConnections();
  secure.close();
});

test("a provider behind TLS: the connection is kept, and its session resumed", { skip: NO_OPENSSL }, async () => {
  resumed = [];
  const models = { m: { type: "openai", baseUrl: `https://localhost:${portOf(secure)}` } };
  await using gateway = await startGateway(models);
  const large = { ...CHAT, filler: "x".repeat(200_000) };
  for (const body of [CHAT, large, CHAT]) assert.equal((await post(gateway, body)).status, 200);
  assert.equal(resumed.length, 1, "three requests, one connection");
  for (const socket of sockets) socket.destroy();
  assert.equal((await post(gateway)).status, 200);
  assert.deepEqual(resumed, [false, true]);
});

test("a certificate for another name is refused, and not asked for again", { skip: NO_OPENSSL }, async () => {
  const wrong = { type: "openai", baseUrl: `https://127.0.0.1:${portOf(secure)}` };
  await using gateway = await startGateway({
    m: wrong,
    n: { ...wrong, fallbacks: ["spare"] },
    spare: { type: "mock" },
  });
  let connections = 0;
  const count = () => {
    connections += 1;
  };
  secure.on("connection", count);
  const refused = await post(gateway);
  assert.equal(await codeOf(refused), "PROVIDER_CERTIFICATE_REFUSED");
  assert.equal(connections, 1);
  const answered = await post(gateway, CHAT, "n");
  assert.deepEqual([answered.status, answered.headers.get("x-service-model")], [200, "spare"]);
  assert.equal(connections, 2);
  secure.off("connection", count);
});

test("a kept connection that the provider closes under a request costs no attempt", async () => {
  let connections = 0;
  const server = createNetServer((socket) => {
    connections += 1;
    let requests = 0;
    socket.on("error", () => {});
    socket.on("data", () => {
      requests += 1;
      // Serves one request of each connection and leaves with the second, as if its time had just run out.
      if (requests > 1) socket.destroy();
      else
        socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`,
        );
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  {
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: `http://127.0.0.1:${portOf(server)}` } });
    for (let round = 1; round <= 3; round += 1) {
      const response = await post(gateway);
      assert.deepEqual([response.status, response.headers.get("x-service-attempts")], [200, null]);
      assert.equal(connections, round);
    }
    assert.deepEqual(
      gateway.usage.map((event) => event.attempts),
      [1, 1, 1],
    );
  }
  server.close();
});

test("an answer that comes before the request has left does not spoil the next", async () => {
  let connections = 0;
  // Answers at the first byte and never reads on: what is left of the request is still in the connection.
  const server = createNetServer((socket) => {
    connections += 1;
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.pause();
      socket.write("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\n{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  {
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: `http://127.0.0.1:${portOf(server)}` } });
    const large = { ...CHAT, filler: "x".repeat(16 * 1024 * 1024) };
    for (let round = 1; round <= 2; round += 1) {
      assert.equal((await post(gateway, large)).status, 413);
      assert.equal(connections, round);
    }
  }
  server.close();
});

test("what the platform says of an answer, a provider cannot say", async () => {
  await using upstream = await startUpstream((_request, res) =>
    sendJson(res, ANSWER, 200, {
      "X-Service-Model": "somebody-else",
      "x-service-request-id": "forged",
      "X-Kept": "yes",
      "set-cookie": "a=b",
    }),
  );
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  const { headers } = await post(gateway);
  assert.equal(headers.get("x-service-model"), "m");
  assert.equal(headers.get("x-service-request-id"), "req-1");
  assert.deepEqual([headers.get("x-kept"), headers.get("set-cookie")], ["yes", null]);
});

test("an identifier that would be a header of its own is not sent", async () => {
  await using upstream = await startUpstream((_request, res) => sendJson(res, ANSWER));
  const models = { m: { type: "openai", baseUrl: upstream.baseUrl, organization: "org\r\nx-evil: 1" } };
  await using gateway = await startGateway(models);
  assert.equal(await codeOf(await post(gateway)), "PROVIDER_NOT_CONFIGURED");
  assert.equal(upstream.requests.length, 0);
});
