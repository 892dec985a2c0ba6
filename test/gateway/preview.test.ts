/** Previews: an address of its own for a port inside a sandbox. */
import assert from "node:assert/strict";
import { fixedHeaders } from "../../src/http/header-rules.ts";
import { AUTH, answering, exchange, inEveryLane, OK, preview, rawUpstream } from "./harness.ts";

const sandbox = { kind: "sandbox", door: 3000 } as const;
const ask = (port: number, path: string, headers = "", method = "GET", host = "h"): Promise<string> =>
  exchange(port, `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`);

inEveryLane("a public preview needs nothing; host and path form lead to the same place", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({
    upstream: up.port,
    domain: "berth.test",
    workloads: [{ ...sandbox, preview: preview() }],
  });
  assert.match(await ask(gw.port, "/ws/previews/p//x?y=1"), /200 OK/);
  assert.match(await ask(gw.port, "//x?y=1", "", "GET", "p.eu.preview.berth.test"), /200 OK/);
  assert.equal(up.received.join("").match(/GET \/\/x\?y=1 HTTP/g)?.length, 2);
  assert.match(await ask(gw.port, "/ws/previews/other"), /404 [\s\S]*ROUTE_NOT_FOUND/);
});

inEveryLane("a private preview takes its token from header, query or cookie, and keeps it to itself", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({
    upstream: up.port,
    workloads: [{ ...sandbox, preview: preview({ public: false }) }],
  });
  const at = "/ws/previews/p/app";
  assert.match(await ask(gw.port, at), /401 [\s\S]*AUTHENTICATION_REQUIRED/);
  assert.match(await ask(gw.port, at, AUTH), /401 /, "a platform credential is not a preview token");
  assert.match(await ask(gw.port, `${at}?bl_preview_token=old`), /401 [\s\S]*AUTHENTICATION_FAILED/);
  assert.equal(up.connections.length, 0);
  assert.match(await ask(gw.port, at, "X-Berth-Preview-Token: tok\r\n"), /200 OK/);
  assert.match(await ask(gw.port, at, "x-service-preview-token: tok\r\n"), /200 OK/);
  const byQuery = await ask(gw.port, `${at}?a=%2F&bl_preview_token=tok&b`, "Accept: text/html\r\n");
  const cookie = /Set-Cookie: (berth_preview=tok); Path=\/ws\/previews\/p; HttpOnly; SameSite=Lax\r\n/.exec(
    byQuery,
  )?.[1];
  assert.ok(cookie, byQuery);
  assert.match(await ask(gw.port, at, `Cookie: ${cookie}; mine=1\r\n`), /200 OK/);
  const seen = up.received.join("");
  assert.doesNotMatch(seen, /tok/);
  assert.match(seen, /GET \/app\?a=%2F&b HTTP/);
  assert.match(seen, /\r\nCookie: mine=1\r\n/);
});

inEveryLane("the owner's headers are added both ways, also to what the platform answers", async (start) => {
  await using up = await rawUpstream(
    answering("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: nobody\r\nContent-Length: 2\r\n\r\nok"),
  );
  await using gw = await start({
    upstream: up.port,
    workloads: [
      {
        ...sandbox,
        preview: preview({
          public: false,
          requestHeaders: fixedHeaders({
            "X-Inner": "1",
            Authorization: "Basic app",
            "Content-Length": "9",
            Evil: "a\r\nb: c",
          }),
          responseHeaders: fixedHeaders({ "Access-Control-Allow-Origin": "https://shop", "X-Outer": "2" }),
        }),
      },
    ],
  });
  const at = "/ws/previews/p";
  const ok = await ask(gw.port, at, "X-Berth-Preview-Token: tok\r\nAuthorization: Bearer x\r\n");
  assert.match(ok, /\r\nAccess-Control-Allow-Origin: https:\/\/shop\r\nX-Outer: 2\r\n/);
  assert.doesNotMatch(ok, /nobody/);
  const head = up.received[0] ?? "";
  assert.match(head, /\r\nX-Inner: 1\r\nAuthorization: Basic app\r\n/);
  assert.doesNotMatch(head, /Bearer x|Evil|b: c|Content-Length/);
  assert.match(await ask(gw.port, at), /^HTTP\/1\.1 401 [\s\S]*\r\nAccess-Control-Allow-Origin: https:\/\/shop\r\n/);

  const preflight = await ask(
    gw.port,
    at,
    "Origin: https://shop\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-a, x-berth-preview-token\r\n",
    "OPTIONS",
  );
  assert.match(preflight, /^HTTP\/1\.1 204 /);
  for (const line of [
    "Access-Control-Allow-Origin: https://shop",
    "X-Outer: 2",
    "Access-Control-Allow-Methods: PUT",
    "Access-Control-Allow-Headers: x-a, x-berth-preview-token",
  ]) {
    assert.ok(preflight.includes(`\r\n${line}\r\n`), line);
  }
  assert.equal(up.connections.length, 1, "a preflight is answered without the application");
});

inEveryLane("without CORS headers of the owner's, a preflight is the application's to answer", async (start) => {
  await using up = await rawUpstream(answering("HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: app\r\n\r\n"));
  await using gw = await start({ upstream: up.port, workloads: [{ ...sandbox, preview: preview() }] });
  const preflight = await ask(
    gw.port,
    "/ws/previews/p",
    "Origin: https://x\r\nAccess-Control-Request-Method: PUT\r\n",
    "OPTIONS",
  );
  assert.match(preflight, /^HTTP\/1\.1 204 [\s\S]*Access-Control-Allow-Origin: app/);
});

inEveryLane("an application that does not listen gives 502", async (start) => {
  await using gw = await start({ upstream: 1, workloads: [{ ...sandbox, preview: preview() }] });
  assert.match(await ask(gw.port, "/ws/previews/p"), /^HTTP\/1\.1 502 [\s\S]*WORKLOAD_NOT_LISTENING/);
});

inEveryLane("a key of the platform that is sent to a preview ends here", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port, workloads: [{ ...sandbox, preview: preview({ public: true }) }] });
  await ask(gw.port, "/ws/previews/p", "Authorization: Bearer good\r\n");
  await ask(gw.port, "/ws/previews/p", "Authorization: Bearer the-apps-own\r\n");
  const seen = up.received.join("");
  assert.doesNotMatch(seen, /Bearer good/);
  assert.match(seen, /Authorization: Bearer the-apps-own/);
});
