/** The proxy is faithful: what one side says is what the other side hears. */
import assert from "node:assert/strict";
import { createServer, request as httpRequest } from "node:http";
import {
  AUTH,
  answering,
  eventually,
  exchange,
  heldClock,
  inEveryLane,
  listen,
  OK,
  RawClient,
  rawUpstream,
} from "./harness.ts";

const CLOSE = "Connection: close\r\n";
const linesOf = (head: string): string[] => head.split("\r\n\r\n")[0]?.split("\r\n") ?? [];

inEveryLane("every odd path reaches the workload byte for byte", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  const paths = [
    ["", "/"],
    ["/", "/"],
    ["//tmp//x", "//tmp//x"],
    ["/%2Ftmp%2fa%00", "/%2Ftmp%2fa%00"],
    ["/a/../../b/./c", "/a/../../b/./c"],
    ["/?a=1&&b=%zz&=?x", "/?a=1&&b=%zz&=?x"],
    ["?only=query", "/?only=query"],
    ["/\\|^`{}[]<>", "/\\|^`{}[]<>"],
    ["/;p=1,2/$&'()*+:@!", "/;p=1,2/$&'()*+:@!"],
  ] as const;
  for (const [sent, seen] of paths) {
    await exchange(gw.port, `GET /ws/agents/a${sent} HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
    const last = up.received.join("").split("GET ").at(-1);
    assert.equal(last?.split(" HTTP/1.1")[0], seen);
  }
});

inEveryLane(
  "headers keep order, spelling and repetition; connection fields and credentials stay behind",
  async (start) => {
    await using up = await rawUpstream(answering(OK));
    await using gw = await start({ upstream: up.port });
    await exchange(
      gw.port,
      `POST /run/ws/agents/a/x HTTP/1.1\r\nhOsT: my.host:1\r\n${AUTH}X-Berth-Authorization: Bearer good\r\n` +
        "Authorization: Bearer for-the-workload\r\nX-Dup: 1\r\nx-dup: 2\r\nX-Empty:\r\nX-Latin: \xe9\r\n" +
        "X-Service-Thread-Id: t1\r\nX-Service-Subject-Id: forged\r\nX-Subject-Id: forged\r\n" +
        "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-Ip: 6.6.6.6\r\nX-Request-Id: my-id\r\n" +
        "Keep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: p\r\nX-Private: p\r\n" +
        "Cookie: a=1; berth_session=secret; b=2\r\nConnection: close, X-Private, Host\r\nContent-Length: 2\r\n\r\nhi",
    );
    assert.deepEqual(linesOf(up.received[0] ?? ""), [
      "POST /x HTTP/1.1",
      "hOsT: my.host:1",
      "Authorization: Bearer for-the-workload",
      "X-Dup: 1",
      "x-dup: 2",
      "X-Empty: ",
      "X-Latin: \xe9",
      "X-Service-Thread-Id: t1",
      "Cookie: a=1; b=2",
      "X-Forwarded-For: 127.0.0.1",
      "X-Forwarded-Proto: http",
      "X-Forwarded-Host: my.host:1",
      "X-Forwarded-Prefix: /run/ws/agents/a",
      "X-Request-Id: my-id",
      "Content-Length: 2",
      "TE: trailers",
      "Connection: TE",
    ]);
    assert.ok(up.received[0]?.endsWith("\r\n\r\nhi"));
  },
);

inEveryLane("a trusted terminator's forwarding headers are continued", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port, trustProxy: true });
  await exchange(
    gw.port,
    `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: pub\r\n\r\n`,
  );
  const lines = linesOf(up.received[0] ?? "");
  for (const line of ["X-Forwarded-For: 9.9.9.9, 127.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: pub"]) {
    assert.ok(lines.includes(line), line);
  }
});

inEveryLane("Authorization is removed only where it was the platform's own", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port, workloads: [{}, { name: "open", public: true }] });
  const ask = async (name: string, token: string, more = ""): Promise<boolean> => {
    const before = up.received.join("").length;
    await exchange(
      gw.port,
      `GET /ws/agents/${name} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\n${more}${CLOSE}\r\n`,
    );
    return up.received.join("").slice(before).includes(`Authorization: Bearer ${token}`);
  };
  assert.equal(await ask("a", "good"), false);
  assert.equal(await ask("open", "good"), false, "a platform key sent to a public workload");
  assert.equal(await ask("open", "the-apps-own"), true);
  assert.equal(await ask("a", "good", AUTH), false, "the same key in both headers");
  assert.equal(await ask("a", "the-apps-own", AUTH), true);
});

inEveryLane("response headers come back as sent, without what speaks for the platform", async (start) => {
  await using up = await rawUpstream(
    answering(
      "HTTP/1.1 203 Very  Odd\r\nsErVer: x\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nSet-Cookie: berth_session=evil\r\n" +
        "X-Berth-Source: platform\r\nX-Service-Source: platform\r\nX-Request-Id: its-own\r\nKeep-Alive: timeout=9\r\nX-Hop: 1\r\n" +
        "Connection: keep-alive, x-hop\r\nDate: then\r\nContent-Length: 2\r\n\r\nok",
    ),
  );
  await using gw = await start({ upstream: up.port, domain: "berth.test" });
  const host = "agt-a-ws.eu.berth.test";
  const response = await exchange(
    gw.port,
    `GET / HTTP/1.1\r\nHost: ${host}\r\n${AUTH}X-Request-Id: mine-1\r\n${CLOSE}\r\n`,
  );
  assert.deepEqual(linesOf(response), [
    "HTTP/1.1 203 Very  Odd",
    "sErVer: x",
    "Set-Cookie: a=1",
    "set-cookie: b=2",
    "Date: then",
    "Content-Length: 2",
    "X-Request-Id: mine-1",
    "X-Berth-Time-Limit: total=900, idle=100",
    "X-Service-Time-Limit: total=900, idle=100",
    "Connection: close",
  ]);
  // Written when the exchange is over, which the client may see first.
  await eventually(() => gw.answered.length > 0, "the log line is written");
  const { requestId, status, method, uid } = gw.answered[0] ?? {};
  assert.deepEqual([requestId, status, method, typeof uid], ["mine-1", 203, "GET", "string"]);
  await exchange(
    gw.port,
    `GET / HTTP/1.1\r\nHost: agt-nobody-ws.eu.berth.test\r\n${AUTH}X-Request-Id: mine-2\r\n${CLOSE}\r\n`,
  );
  assert.deepEqual(gw.answered[1], { requestId: "mine-2", status: 404, error: "ROUTE_NOT_FOUND" });
});

inEveryLane("a chunked response keeps its trailers, a chunked request too", async (start) => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (!received().endsWith("X-Sum: 7\r\n\r\n")) return;
      socket.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Check\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Check: 9\r\nContent-Length: 5\r\n\r\n",
      );
    });
  });
  await using gw = await start({ upstream: up.port });
  const response = await exchange(
    gw.port,
    `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\nHost: evil\r\n\r\n`,
  );
  assert.ok(
    up.received[0]?.endsWith("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"),
    up.received[0],
  );
  assert.match(response, /\r\nTransfer-Encoding: chunked\r\n/i);
  assert.ok(response.endsWith("\r\n\r\n5\r\nabcde\r\n0\r\nX-Check: 9\r\n\r\n"), response);
});

inEveryLane("Expect: 100-continue is the workload's to answer", async (start) => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      if (received().endsWith("\r\n\r\n")) socket.write("HTTP/1.1 100 Continue\r\n\r\n");
      if (received().endsWith("body")) socket.write(OK);
    });
  });
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`PUT /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
  await client.until((text) => text.includes("100 Continue\r\n\r\n"));
  client.write("body");
  await client.until((text) => text.endsWith("ok"));
});

inEveryLane("a workload that refuses instead of continuing ends the connection behind its answer", async (start) => {
  await using up = await rawUpstream(answering("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"));
  await using gw = await start({ upstream: up.port });
  const response = await exchange(
    gw.port,
    `PUT /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n`,
  );
  assert.match(response, /^HTTP\/1\.1 417 No\r\n/);
  assert.match(response, /\r\nConnection: close\r\n/);
});

inEveryLane("early hints travel ahead of the response", async (start) => {
  await using up = await rawUpstream(
    answering(`HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload; as=style\r\n\r\n${OK}`),
  );
  await using gw = await start({ upstream: up.port });
  const response = await exchange(gw.port, `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
  assert.match(
    response,
    /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a.css>; rel=preload; as=style\r\n\r\nHTTP\/1\.1 200/i,
  );
});

inEveryLane("event streams: headers at once, each event as it comes, an end that is felt", async (start) => {
  await using up = await rawUpstream(
    answering("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"),
  );
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}\r\n`);
  await client.until((text) => text.includes("\r\n\r\n"));
  for (const event of ["one", "two"]) {
    up.connections[0]?.write(`9\r\ndata: ${event}\r\n`);
    await client.until((text) => text.endsWith(`9\r\ndata: ${event}\r\n`));
  }
  up.connections[0]?.write("0\r\n\r\n");
  await client.until((text) => text.endsWith("\r\n0\r\n\r\n"));
});

inEveryLane("a client that leaves takes the request to the workload with it", async (start) => {
  await using up = await rawUpstream(() => {});
  await using gw = await start({ upstream: up.port });
  const client = await RawClient.to(gw.port);
  client.write(`GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}\r\n`);
  await eventually(() => (up.received[0] ?? "").endsWith("\r\n\r\n"), "the request arrives");
  const record = gw.nextRecord();
  client.socket.destroy();
  assert.deepEqual([(await record).clientGone, (await record).status], [true, 0]);
  await eventually(() => up.connections[0]?.destroyed === true || up.connections[0]?.readableEnded === true, "cut");
  assert.equal(gw.leases, 0);
});

inEveryLane("HTTP/1.0 clients get a plain body that ends with the connection", async (start) => {
  await using up = await rawUpstream(
    answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
  );
  await using gw = await start({ upstream: up.port });
  const response = await exchange(gw.port, `GET /ws/agents/a HTTP/1.0\r\n${AUTH}\r\n`);
  assert.doesNotMatch(response, /chunked/i);
  assert.ok(response.endsWith("\r\n\r\nok"), response);
  assert.match(up.received[0] ?? "", /\r\nHost: localhost\r\n/);
});

inEveryLane("pipelined requests are answered in order", async (start) => {
  await using up = await rawUpstream(
    answering((head) => {
      const path = head.split(" ")[1] ?? "";
      return `HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`;
    }),
  );
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  const one = (n: number): string => `GET /ws/agents/a/${n} HTTP/1.1\r\nHost: h\r\n${AUTH}\r\n`;
  client.write([1, 2, 3, 4, 5].map(one).join(""));
  const all = await client.until((text) => text.endsWith("/5"));
  assert.deepEqual(all.match(/\r\n\r\n\/\d/g), ["\r\n\r\n/1", "\r\n\r\n/2", "\r\n\r\n/3", "\r\n\r\n/4", "\r\n\r\n/5"]);
});

inEveryLane("HEAD, 204 and 304 have no body, whatever their headers say", async (start) => {
  await using up = await rawUpstream(
    answering((head) => {
      if (head.startsWith("HEAD")) return "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n";
      return head.includes("/204")
        ? "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"
        : "HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 7\r\n\r\n";
    }),
  );
  await using gw = await start({ upstream: up.port });
  const head = await exchange(gw.port, `HEAD /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
  assert.match(head, /Content-Length: 99\r\n[\s\S]*\r\n\r\n$/);
  const none = await exchange(gw.port, `GET /ws/agents/a/204 HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
  assert.match(none, /^HTTP\/1\.1 204 [\s\S]*\r\n\r\n$/);
  assert.doesNotMatch(none, /content-length/i);
  const same = await exchange(gw.port, `GET /ws/agents/a/304 HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
  assert.match(same, /^HTTP\/1\.1 304 [\s\S]*Content-Length: 7\r\n[\s\S]*\r\n\r\n$/);
});

inEveryLane("a response may begin while the request is still being sent", async (start) => {
  const echo = createServer((req, res) => {
    res.writeHead(200);
    req.pipe(res);
  });
  const upstream = await listen(echo);
  await using gw = await start({ upstream });
  const req = httpRequest(`${gw.url}/ws/agents/a`, { method: "POST", headers: { authorization: "Bearer good" } });
  const res = await new Promise<import("node:http").IncomingMessage>((resolve, reject) => {
    req.on("response", resolve).on("error", reject);
    req.write("first");
  });
  const chunks: string[] = [];
  for await (const chunk of res) {
    chunks.push(String(chunk));
    if (chunks.length === 1) req.end("second");
  }
  assert.equal(chunks.join(""), "firstsecond");
  echo.close();
  echo.closeAllConnections();
});

inEveryLane("an early answer to an upload is delivered, and the client may go on", async (start) => {
  await using up = await rawUpstream(
    answering("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
  );
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Content-Length: 200000\r\n\r\n${"x".repeat(1000)}`);
  await client.until((text) => text.startsWith("HTTP/1.1 413"));
  client.write("x".repeat(199_000));
  client.write(`GET /ws/agents/b HTTP/1.1\r\nHost: h\r\n${AUTH}\r\n`);
  await client.until((text) => text.includes("HTTP/1.1 404"));
});

inEveryLane("connections to the workload are reused, one exchange at a time", async (start) => {
  using _clock = heldClock(); // no connection has rested for too long
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  for (let round = 0; round < 5; round += 1) {
    await exchange(gw.port, `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Content-Length: 0\r\n\r\n`);
  }
  assert.equal(up.connections.length, 1);
});

inEveryLane("a GET on a kept connection that dies is sent once more, a POST never", async (start) => {
  await using up = await rawUpstream((socket, received, index) => {
    socket.on("data", () => {
      const requests = received().split("\r\n\r\n").length - 1;
      if (index === 0 && requests === 2) socket.destroy();
      else socket.write(OK);
    });
  });
  await using gw = await start({ upstream: up.port });
  const ask = (method: string): Promise<string> =>
    exchange(gw.port, `${method} /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
  assert.match(await ask("GET"), /200 OK/);
  assert.match(await ask("GET"), /200 OK/);
  assert.equal(up.connections.length, 2);
});

inEveryLane("a POST on a kept connection that dies is answered, not repeated", async (start) => {
  using _clock = heldClock();
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      const requests = received().split("\r\n\r\n").length - 1;
      if (requests === 2) socket.destroy();
      else socket.write(OK);
    });
  });
  await using gw = await start({ upstream: up.port });
  const ask = (): Promise<string> =>
    exchange(gw.port, `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Content-Length: 0\r\n\r\n`);
  assert.match(await ask(), /200 OK/);
  assert.match(await ask(), /502 Bad Gateway[\s\S]*WORKLOAD_CONNECTION_CLOSED/);
  assert.equal(up.connections.length, 1);
});

inEveryLane("what a daemon took on its way out goes to the next one, if it may be repeated", async (start) => {
  await using up = await rawUpstream((socket, _received, index) => {
    socket.on("data", () => (index < 4 ? socket.destroy() : socket.write(OK)));
  });
  await using gw = await start({ upstream: up.port, workloads: [{}, { kind: "sandbox", name: "s", door: "api" }] });
  const ask = (head: string): Promise<string> => exchange(gw.port, `${head}\r\nHost: h\r\n${AUTH}${CLOSE}\r\n`);
  const post = "POST /ws/sandboxes/s HTTP/1.1\r\nContent-Length: 0";
  for (const head of [post, "GET /ws/agents/a HTTP/1.1"]) assert.match(await ask(head), /WORKLOAD_CONNECTION_CLOSED/);
  assert.equal(up.connections.length, 2);
  assert.match(await ask("GET /ws/sandboxes/s HTTP/1.1"), /200 OK/);
  assert.equal(up.connections.length, 5);
});

inEveryLane("duplicate Host, two lengths and other encodings are refused", async (start) => {
  await using up = await rawUpstream(answering(OK));
  await using gw = await start({ upstream: up.port });
  const bad = [
    `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\nHost: i\r\n${AUTH}${CLOSE}\r\n`,
    `GET /ws/agents/a HTTP/1.1\r\n${AUTH}${CLOSE}\r\n`,
    `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    `POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    `GET /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}${CLOSE}X: a\r\n folded\r\n\r\n`,
    `GET /ws/agents/a HTTP/1.1\r\nHost : h\r\n${AUTH}${CLOSE}\r\n`,
  ];
  for (const request of bad) assert.match(await exchange(gw.port, request), /^HTTP\/1\.1 400 /, request);
  assert.equal(up.connections.length, 0);
});

inEveryLane("bad chunks in a request end both sides", async (start) => {
  await using up = await rawUpstream(() => {});
  await using gw = await start({ upstream: up.port });
  using client = await RawClient.to(gw.port);
  client.write(`POST /ws/agents/a HTTP/1.1\r\nHost: h\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`);
  await eventually(() => (up.received[0] ?? "").endsWith("2\r\nok\r\n"), "the first chunk arrives");
  client.write("zz\r\n");
  await client.end();
  await eventually(() => up.connections[0]?.readableEnded === true || up.connections[0]?.destroyed === true, "cut");
  assert.ok(!(up.received[0] ?? "").includes("0\r\n\r\n"), "the workload must not see a proper end");
});
