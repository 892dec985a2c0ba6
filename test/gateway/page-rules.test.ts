/** What a workload's response may tell a browser, in the path form and on a host of its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedHeaders } from "../../src/http/header-rules.ts";
import { confinedCookie, isDocument } from "../../src/http/page-rules.ts";
import { answering, exchange, inBothLanes, preview, rawUpstream } from "./harness.ts";

const SANDBOX =
  "\r\nContent-Security-Policy: sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads\r\n";
const open = { kind: "sandbox", door: 3000, preview: preview() } as const;
const PATH = "/ws/previews/p";
const HOST = "p.preview.berth.test";

const ask = (port: number, path: string, host = "h", headers = ""): Promise<string> =>
  exchange(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`);
const says = (...headers: string[]): string =>
  `HTTP/1.1 200 OK\r\n${headers.map((line) => `${line}\r\n`).join("")}Content-Length: 2\r\n\r\nok`;

inBothLanes("fields that speak for an origin pass on a host of the workload's own only", async (start) => {
  const fields = [
    "Service-Worker-Allowed: /",
    "Cross-Origin-Opener-Policy: unsafe-none",
    "Cross-Origin-Embedder-Policy: require-corp",
    "Cross-Origin-Resource-Policy: same-origin",
    'Alt-Svc: h3=":443"',
    "NEL: {}",
    "Report-To: {}",
    "Strict-Transport-Security: max-age=1",
    'Secure-Session-Registration: (ES256);path="/begin"',
    'Secure-Session-Challenge: "c"',
    'Sec-Session-Registration: (ES256);path="/begin"',
    'Speculation-Rules: "/rules.json"',
    "Supports-Loading-Mode: credentialed-prerender",
    "Refresh: 0; url=/v0/workspaces",
    "Set-Login: logged-in",
    "Origin-Agent-Cluster: ?0",
    "Document-Policy: no-document-write",
    "Document-Isolation-Policy: isolate-and-require-corp",
    'Reporting-Endpoints: a="https://evil.example/"',
    "Observe-Browsing-Topics: ?1",
    'Use-As-Dictionary: match="/*"',
    "Activate-Storage-Access: load",
    "Shared-Storage-Write: clear",
    "Attribution-Reporting-Register-Source: {}",
    "Accept-CH: Sec-CH-UA-Model",
    "Critical-CH: Sec-CH-UA-Model",
    "Expect-CT: max-age=1",
  ];
  await using up = await rawUpstream(answering(says("Content-Type: text/html", ...fields, "X-Own: 1")));
  await using gw = await start({ upstream: up.port, domain: "berth.test", workloads: [open] });
  const byPath = await ask(gw.port, PATH);
  const byHost = await ask(gw.port, "/", HOST);
  for (const field of fields) {
    assert.ok(!byPath.toLowerCase().includes(field.split(":")[0]?.toLowerCase() ?? ""), `${field}: ${byPath}`);
    assert.ok(byHost.includes(`\r\n${field}\r\n`), `${field}: ${byHost}`);
  }
  assert.ok(byPath.includes("\r\nX-Own: 1\r\n"));
  assert.ok(byPath.includes(SANDBOX), byPath);
  assert.ok(!byHost.includes("sandbox"), byHost);
});

inBothLanes("cookies stay with the workload that sets them", async (start) => {
  const cookies = [
    "a=1",
    "b=2; Path=/; HttpOnly",
    "c=3; path=/app; Domain=berth.test",
    `d=4; Path=${PATH}/x`,
    `e=5; Path=${PATH}x; Path=/ws`,
    "berth_session=evil",
    "__Host-berth_session=evil; Secure; Path=/",
    "__hoST-Berth_session=evil",
    "=berth_session=evil",
    "berth_session",
    " =evil",
  ];
  await using up = await rawUpstream(answering(says(...cookies.map((cookie) => `Set-Cookie: ${cookie}`))));
  await using gw = await start({ upstream: up.port, domain: "berth.test", workloads: [open] });
  const kept = (answer: string): string[] =>
    [...answer.matchAll(/\r\nSet-Cookie: ([^\r]*)/gi)].map(([, one = ""]) => one);
  assert.deepEqual(kept(await ask(gw.port, PATH)), [
    `a=1; Path=${PATH}`,
    `b=2; HttpOnly; Path=${PATH}`,
    `c=3; Path=${PATH}/app`,
    `d=4; Path=${PATH}/x`,
    `e=5; Path=${PATH}/ws`,
  ]);
  assert.deepEqual(kept(await ask(gw.port, "/", HOST)), [
    "a=1",
    "b=2; Path=/; HttpOnly",
    "c=3; path=/app",
    `d=4; Path=${PATH}/x`,
    `e=5; Path=${PATH}x; Path=/ws`,
  ]);
});

inBothLanes("the platform's own cookies never reach a workload", async (start) => {
  await using up = await rawUpstream(answering(says()));
  await using gw = await start({ upstream: up.port, workloads: [open] });
  const cookie = "Cookie: a=1; berth_session=s1; __Host-berth_session=s2; b=2\r\n";
  assert.match(await ask(gw.port, PATH, "h", cookie), /200 OK/);
  assert.match(up.received.join(""), /\r\nCookie: a=1; b=2\r\n/);
});

inBothLanes("Clear-Site-Data reaches no further than the workload's own origin", async (start) => {
  await using up = await rawUpstream(answering(says('Clear-Site-Data: "cookies", "storage", "*", "cache"')));
  await using gw = await start({ upstream: up.port, domain: "berth.test", workloads: [open] });
  assert.doesNotMatch(await ask(gw.port, PATH), /clear-site-data/i);
  assert.match(await ask(gw.port, "/", HOST), /\r\nClear-Site-Data: "storage", "cache"\r\n/);
});

inBothLanes("early hints carry links and nothing else", async (start) => {
  const hints =
    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload; as=style\r\nSet-Cookie: berth_session=evil\r\n";
  await using up = await rawUpstream(answering(`${hints}\r\n${says()}`));
  await using gw = await start({ upstream: up.port, workloads: [open] });
  const answer = await ask(gw.port, PATH);
  assert.match(answer, /103 Early Hints\r\nLink: /);
  assert.doesNotMatch(answer, /evil/);
});

inBothLanes("whether a response is a page is told by its type", async (start) => {
  let type = "";
  await using up = await rawUpstream(
    answering(() => says(...(type === "" ? [] : type.split("\n").map((one) => `Content-Type: ${one}`)))),
  );
  await using gw = await start({ upstream: up.port, workloads: [open] });
  const isSandboxed = async (given: string): Promise<boolean> => {
    type = given;
    const answer = await ask(gw.port, PATH, "h", "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n");
    assert.match(answer, /\r\n\r\nok$/, "the body is as it was");
    return answer.includes(SANDBOX);
  };
  for (const page of [
    "",
    "text/html",
    "TEXT/HTML; charset=utf-8",
    "image/svg+xml",
    "text/xml",
    "application/json\ntext/html",
  ])
    assert.equal(await isSandboxed(page), true, page);
  for (const data of ["application/json", "text/event-stream", "image/png", "text/plain; charset=utf-8"])
    assert.equal(await isSandboxed(data), false, data);
});

inBothLanes("path_pages: pages are saved instead of shown, or trusted", async (start) => {
  await using up = await rawUpstream(answering(says("Content-Type: text/html", "Content-Disposition: inline")));
  await using off = await start({ upstream: up.port, workloads: [open], pathPages: "off" });
  const saved = await ask(off.port, PATH);
  assert.match(saved, /\r\nContent-Security-Policy: sandbox\r\nContent-Disposition: attachment\r\n/);
  assert.doesNotMatch(saved, /inline/);
  await using trusted = await start({ upstream: up.port, workloads: [open], pathPages: "trusted" });
  assert.doesNotMatch(await ask(trusted.port, PATH), /sandbox/);
});

inBothLanes("a service worker's script is served on a host of the workload's own only", async (start) => {
  await using up = await rawUpstream(answering(says("Content-Type: text/javascript")));
  await using gw = await start({ upstream: up.port, domain: "berth.test", workloads: [open] });
  const asked = "Service-Worker: script\r\n";
  assert.match(await ask(gw.port, `${PATH}/sw.js`, "h", asked), /^HTTP\/1\.1 403 /);
  assert.match(await ask(gw.port, "/sw.js", HOST, asked), /200 OK/);
});

inBothLanes("what a preview's owner adds is ruled like what the workload sends", async (start) => {
  const responseHeaders = fixedHeaders({
    "Set-Cookie": "berth_session=evil; Domain=berth.test",
    "Service-Worker-Allowed": "/",
    "Content-Type": "text/html",
    "Access-Control-Allow-Origin": "*",
  });
  await using up = await rawUpstream(answering(says("Content-Type: application/json")));
  const workloads = [{ ...open, preview: preview({ responseHeaders }) }];
  await using gw = await start({ upstream: up.port, workloads });
  const answer = await ask(gw.port, PATH);
  assert.doesNotMatch(answer, /evil|service-worker-allowed/i);
  assert.ok(answer.includes(SANDBOX), answer);
  const ours = await ask(gw.port, PATH, "h", "Service-Worker: script\r\n");
  assert.match(ours, /^HTTP\/1\.1 403 [\s\S]*Access-Control-Allow-Origin: \*/);
  assert.doesNotMatch(ours, /evil|service-worker-allowed/i);
});

test("the address of a trigger cannot become an attribute of a cookie", () => {
  assert.equal(confinedCookie("a=1", "/ws/hook;Domain=berth.test", "berth_"), null);
});

test("types that browsers guess at are pages", () => {
  for (const type of ["*/*", "unknown/unknown", "application/xhtml+xml", "image/x+xml", "text/plain, text/html", "x"])
    assert.equal(isDocument([type]), true, type);
  for (const type of ["application/vnd.api+json", "application/problem+json;x=y", "font/woff2"])
    assert.equal(isDocument([type]), false, type);
});
