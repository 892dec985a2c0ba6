import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, describe, type TestContext, test } from "node:test";
import { answerQuestion } from "../../../../../test/dns-server.ts";
import { freePort } from "../../../../../test/free-port.ts";
import { startNameServer } from "./name-server.ts";

test("questions go to the machine's name server and answers back to whoever asked", async (t) => {
  const port = await freePort();
  const upstream = createSocket("udp4").bind(port, "127.0.0.1");
  await once(upstream, "listening");
  upstream.on("message", (question, asker) => upstream.send(`answer to ${question}`, asker.port, asker.address));
  const long = createServer((socket) => socket.once("data", () => socket.end(framed("a long answer"))));
  long.listen(port, "127.0.0.1");
  await once(long, "listening");
  const names = await startNameServer("127.0.0.1", {
    upstreams: [{ host: "127.0.0.1", port }],
    port: await freePort(),
  });
  t.after(async () => {
    await names.stop();
    upstream.close();
    long.close();
  });

  const answers = await Promise.all(
    ["one", "two"].map(async (question) => {
      const asker = createSocket("udp4");
      asker.send(question, names.port, "127.0.0.1");
      const [answer] = (await once(asker, "message")) as [Buffer];
      asker.close();
      return answer.toString();
    }),
  );
  assert.deepEqual(answers, ["answer to one", "answer to two"]);
  const socket = connect(names.port, "127.0.0.1");
  socket.write(framed("a question"));
  let text = "";
  for await (const chunk of socket) text += chunk;
  assert.equal(text, framed("a long answer").toString());
});

/** A message as TCP carries it. */
function framed(message: string | Buffer): Buffer {
  const bytes = Buffer.from(message);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

test("names below localhost are the asker's own loopback", async (t) => {
  const names = await startNameServer("127.0.0.1", {
    upstreams: [{ host: "127.0.0.1", port: 9 }],
    port: await freePort(),
  });
  t.after(() => names.stop());
  const asking = (timeout: number): Resolver => {
    const resolver = new Resolver({ timeout, tries: 1 });
    resolver.setServers([`127.0.0.1:${names.port}`]);
    return resolver;
  };
  const resolver = asking(60_000);
  assert.deepEqual(await resolver.resolve4("bl-prod-0123.Run.localhost"), ["127.0.0.1"]);
  await assert.rejects(resolver.resolve6("a.localhost"), { code: "ENODATA" });
  for (const name of ["localhost.example.com", "alocalhost"])
    await assert.rejects(asking(500).resolve4(name), { code: /ETIMEOUT|ECONNREFUSED/ });
});

test("a machine without a name server says so", async () => {
  await assert.rejects(startNameServer("127.0.0.1", { upstreams: [], port: 0 }), /names no name server/);
});

test("the port of both ways is one", async (t) => {
  const names = await startNameServer("127.0.0.1", {
    upstreams: [{ host: "127.0.0.1", port: 9 }],
    port: await freePort(),
  });
  t.after(() => names.stop());
  const taken = createServer().listen(names.port, "127.0.0.1");
  const [error] = (await once(taken, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "EADDRINUSE");
  assert.equal((taken.address() as AddressInfo | null)?.port, undefined);
});

test("a question that the asker's rules refuse gets REFUSED", async (t) => {
  const upstream = createSocket("udp4").bind(0, "127.0.0.1");
  await once(upstream, "listening");
  let asked = 0;
  upstream.on("message", (question, asker) => {
    asked += 1;
    const answer = Buffer.from(question);
    answer.writeUInt16BE(0x8183, 2); // there is no such name
    upstream.send(answer, asker.port, asker.address);
  });
  const names = await startNameServer("127.0.0.1", {
    upstreams: [{ host: "127.0.0.1", port: upstream.address().port }],
    port: await freePort(),
    mayResolve: async (asker, name) => asker === "127.0.0.1" && name.toLowerCase() === "good.test",
  });
  t.after(async () => {
    await names.stop();
    upstream.close();
  });
  const resolver = new Resolver({ timeout: 60_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${names.port}`]);
  await assert.rejects(resolver.resolve4("data.bad.test"), { code: "EREFUSED" });
  assert.equal(asked, 0);
  await assert.rejects(resolver.resolve4("good.test"), { code: "ENOTFOUND" });
  assert.equal(asked, 1);
});

describe("questions over TCP", () => {
  const MANY = Array.from({ length: 200 }, (_, index) => `203.0.113.${index + 1}`);
  const places = new DisposableStack();
  let port = 0;
  const asked: string[] = [];

  before(async () => {
    const free = await freePort();
    const upstream = createSocket("udp4").bind(free, "127.0.0.1");
    // Over UDP every answer is cut short; over TCP it is whole.
    upstream.on("message", (question, asker) => {
      const answer = answerQuestion(question, () => []);
      answer.writeUInt16BE(0x8380, 2);
      upstream.send(answer, asker.port, asker.address);
    });
    const long = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.on("data", (chunk) => {
        const answer = answerQuestion(chunk.subarray(2), (name, type) => {
          asked.push(name);
          return type === "A" ? MANY : [];
        });
        socket.write(framed(answer));
      });
    }).listen(free, "127.0.0.1");
    await Promise.all([once(upstream, "listening"), once(long, "listening")]);
    const names = await startNameServer("127.0.0.1", {
      upstreams: [{ host: "127.0.0.1", port: free }],
      port: await freePort(),
      mayResolve: async (_, name) => !name.endsWith("bad.test"),
      neighbourAt: async (_, name) => (name === "db.lab.internal" ? { ipv4: "198.18.0.9", ipv6: null } : null),
      tenantOf: (asker) => (asker.startsWith("127.0.1.") ? "crowd" : asker),
    });
    places.defer(() => void names.stop());
    places.defer(() => upstream.close());
    places.defer(() => long.close());
    port = names.port;
  });
  after(() => places.dispose());

  const open = (t: TestContext): Socket => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {}); // the server may cut the connection
    t.after(() => socket.destroy());
    return socket;
  };
  /** A question for the A records of a name. */
  const question = (id: number, name: string): Buffer =>
    Buffer.concat([
      Buffer.from([0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
      ...name.split(".").flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
      Buffer.from([0, 0, 1, 0, 1]),
    ]);

  test("an answer that is cut short is asked for again over TCP and comes whole", async () => {
    const resolver = new Resolver({ timeout: 60_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${port}`]);
    assert.deepEqual((await resolver.resolve4("good.test")).sort(), MANY.toSorted());
    await assert.rejects(resolver.resolve4("data.bad.test"), { code: "EREFUSED" });
  });

  test("each question of a connection is judged, and a refused one does not leave", async (t) => {
    asked.length = 0;
    const socket = open(t);
    const all = ["data.bad.test", "db.lab.internal", "good.test", "a.localhost", "more.bad.test"];
    // In pieces that end anywhere.
    const bytes = Buffer.concat(all.map((name, index) => framed(question(index, name))));
    for (let at = 0; at < bytes.length; at += 7) socket.write(bytes.subarray(at, at + 7));
    const answers = new Map<number, { code: number; records: number }>();
    let held = Buffer.alloc(0);
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      held = Buffer.concat([held, chunk]);
      while (held.length > 2 && held.length >= 2 + held.readUInt16BE()) {
        const message = held.subarray(2, 2 + held.readUInt16BE());
        answers.set(message.readUInt16BE(), { code: message.readUInt8(3) & 15, records: message.readUInt16BE(6) });
        held = held.subarray(2 + message.length);
      }
      if (answers.size === all.length) break;
    }
    const [NO_ERROR, REFUSED] = [0, 5];
    const told = all.map((_, index) => answers.get(index));
    assert.deepEqual(told, [
      { code: REFUSED, records: 0 },
      { code: NO_ERROR, records: 1 },
      { code: NO_ERROR, records: MANY.length },
      { code: NO_ERROR, records: 1 },
      { code: REFUSED, records: 0 },
    ]);
    assert.deepEqual(asked, ["good.test"]);
  });

  test("a message that is no question, or too long for one, ends the connection", async (t) => {
    for (const bytes of [framed("nonsense"), Buffer.from([0xff, 0xff, 0]), framed(Buffer.alloc(5000))]) {
      const socket = open(t);
      socket.write(bytes);
      socket.resume();
      await once(socket, "close");
    }
  });

  test("an asker has a few connections, and others have theirs", async (t) => {
    const mine = Array.from({ length: 40 }, () => open(t));
    let closed = 0;
    const enough = Promise.withResolvers<void>();
    for (const socket of mine)
      socket.resume().once("close", () => {
        closed += 1;
        if (closed === mine.length - 16) enough.resolve();
      });
    await enough.promise;
    await answerFor("127.0.0.2", t);
  });

  test("a tenant with many workloads has a quarter of the connections", async (t) => {
    const opened = Array.from({ length: 300 }, (_, index) =>
      connect({ port, host: "127.0.0.1", localAddress: `127.0.1.${(index % 100) + 1}` }).on("error", () => {}),
    );
    t.after(() => opened.forEach((socket) => void socket.destroy()));
    let closed = 0;
    const enough = Promise.withResolvers<void>();
    for (const socket of opened)
      socket.resume().once("close", () => {
        closed += 1;
        if (closed === opened.length - 64) enough.resolve();
      });
    await enough.promise;
    await answerFor("127.0.0.3", t);
  });

  async function answerFor(localAddress: string, t: TestContext): Promise<void> {
    const asker = connect({ port, host: "127.0.0.1", localAddress });
    t.after(() => asker.destroy());
    asker.write(framed(question(1, "db.lab.internal")));
    const [answer] = (await once(asker, "data")) as [Buffer];
    assert.equal(answer.readUInt16BE(2 + 6), 1);
  }
});

test("questions of one workload that get no answer hold up no other workload", async (t) => {
  const upstream = createSocket("udp4").bind(0, "127.0.0.1");
  await once(upstream, "listening");
  let silent = 0;
  upstream.on("message", (question, asker) => {
    if (question.toString() === "slow") silent += 1;
    else upstream.send(question, asker.port, asker.address);
  });
  const names = await startNameServer("127.0.0.1", {
    upstreams: [{ host: "127.0.0.1", port: upstream.address().port }],
    port: await freePort(),
    answerWaitMs: 600_000,
  });
  const hostile = createSocket("udp4").bind(0, "127.0.0.1");
  const other = createSocket("udp4").bind(0, "127.0.0.2");
  await Promise.all([once(hostile, "listening"), once(other, "listening")]);
  t.after(async () => {
    await names.stop();
    for (const socket of [upstream, hostile, other]) socket.close();
  });
  for (let round = 0; round < 8; round += 1) {
    for (let n = 0; n < 50; n += 1) hostile.send("slow", names.port, "127.0.0.1");
    const quick = (): void => other.send("quick", names.port, "127.0.0.1");
    const again = setInterval(quick, 1000); // a datagram may be lost
    quick();
    await once(other, "message").finally(() => clearInterval(again));
  }
  assert.ok(silent <= 128, `${silent} questions of one workload are in flight`);
});
