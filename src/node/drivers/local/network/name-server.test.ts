import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import { freePort } from "../../../../../test/free-port.ts";
import { startNameServer } from "./name-server.ts";

test("questions go to the machine's name server and answers back to whoever asked", async (t) => {
  const port = await freePort();
  const upstream = createSocket("udp4").bind(port, "127.0.0.1");
  await once(upstream, "listening");
  upstream.on("message", (question, asker) => upstream.send(`answer to ${question}`, asker.port, asker.address));
  const long = createServer((socket) => socket.end("a long answer")).listen(port, "127.0.0.1");
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
  let text = "";
  for await (const chunk of socket) text += chunk;
  assert.equal(text, "a long answer");
});

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

test("a question that the asker's rules refuse gets REFUSED, and TCP is for those who may ask for everything", async (t) => {
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
    mayResolveAll: () => false,
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
  const socket = connect(names.port, "127.0.0.1");
  socket.on("error", () => {}); // the server cuts the connection
  await once(socket, "close");
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
