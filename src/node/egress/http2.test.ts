/** Requests of a client that speaks HTTP/2 to servers that do: gRPC, streams both ways, ends of either side. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { describe, test } from "node:test";
import {
  type Answering,
  ask,
  closed,
  headOf,
  http2Place,
  NETWORK,
  SECRET,
  textOf,
} from "../../../test/outbound/http2-place.ts";
import type { EgressOptions } from "./egress-proxy.ts";

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_REFUSED_STREAM } = constants;
const GRPC = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };

describe("a client of gRPC", () => {
  test("gets an answer with its trailers, and the server the secret", async (t) => {
    let seen: IncomingHttpHeaders = {};
    const { open, port } = await http2Place(t, async (stream, headers) => {
      seen = headers;
      let text = "";
      for await (const chunk of stream) text += chunk;
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-part": ["1", "2"] }));
      stream.end(`answer to ${text}`);
    });
    const sent = ask(await open(), { ...GRPC, cookie: ["a=1", "b=2"] });
    const trailers = once(sent, "trailers");
    sent.end("a question");
    assert.equal((await headOf(sent))[":status"], 200);
    assert.equal(await textOf(sent), "answer to a question");
    const [{ "grpc-status": status, "x-part": parts }] = (await trailers) as [IncomingHttpHeaders];
    assert.deepEqual([status, parts], ["0", "1, 2"]);
    assert.deepEqual(
      [seen[":authority"], seen[":scheme"], seen.authorization, seen.te, seen.cookie, seen["transfer-encoding"]],
      [`api.test:${port}`, "https", `Bearer ${SECRET}`, "trailers", "a=1; b=2", undefined],
    );
  });

  test("gets an error that is a head alone as a head alone", async (t) => {
    const { open } = await http2Place(t, (stream) => {
      stream.resume();
      stream.respond({ ":status": 200, "grpc-status": "12" }, { endStream: true });
    });
    const sent = ask(await open(), GRPC).end("x");
    const [headers, flags] = (await once(sent, "response")) as [IncomingHttpHeaders, number];
    assert.deepEqual([headers["grpc-status"], flags & constants.NGHTTP2_FLAG_END_STREAM], ["12", 1]);
  });

  test("talks both ways at once, and its own trailers arrive", async (t) => {
    const trailers = Promise.withResolvers<IncomingHttpHeaders>();
    const { open } = await http2Place(t, (stream) => {
      stream.respond({ ":status": 200 });
      stream.once("trailers", trailers.resolve);
      stream.on("data", (chunk: Buffer) => stream.write(`echo ${chunk}`));
      stream.once("end", () => stream.end("bye"));
    });
    const sent = (await open()).request({ ...GRPC, ":path": "/" }, { waitForTrailers: true });
    sent.once("wantTrailers", () => sent.sendTrailers({ "x-sum": "7" }));
    await headOf(sent);
    for (const word of ["one", "two", "three"]) {
      sent.write(word);
      const [chunk] = (await once(sent, "data")) as [Buffer];
      assert.equal(chunk.toString(), `echo ${word}`);
    }
    sent.end();
    assert.equal(await textOf(sent), "bye");
    assert.equal((await trailers.promise)["x-sum"], "7");
  });

  test("a secret in messages and trailers is redacted, and messages keep their length", async (t) => {
    const asked: (string | undefined)[] = [];
    const { open } = await http2Place(t, (stream, headers) => {
      asked.push(headers["grpc-accept-encoding"] as string | undefined);
      const { authorization = "", "x-zip": encoding = "identity" } = headers;
      stream.resume();
      const head = { ":status": 200, "content-type": "application/grpc+proto", "grpc-encoding": encoding };
      stream.respond(head, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-message": `no ${authorization}` }));
      stream.write(`\0\0\0\0\x10it: ${authorization.slice(0, 5)}`);
      setImmediate(() => stream.end(authorization.slice(5)));
    });
    const session = await open("echo.test");
    const sent = ask(session, { ...GRPC, "grpc-accept-encoding": "gzip" }).end("x");
    const trailers = once(sent, "trailers");
    assert.equal(await textOf(sent), `\0\0\0\0\x10it: ${"*".repeat(SECRET.length)}`);
    assert.equal(((await trailers) as [IncomingHttpHeaders])[0]["grpc-message"], "no [redacted]");
    const zipped = await headOf(ask(session, { ...GRPC, "x-zip": "gzip" }).end("x"));
    assert.deepEqual([zipped[":status"], zipped["proxy-error"]], [502, "answer_not_readable"]);
    assert.deepEqual(asked, [undefined, undefined]);
  });
});

describe("ends and limits", () => {
  test("a reset of either side reaches the other one, and nothing that broke off looks whole", async (t) => {
    const left = Promise.withResolvers<[number | undefined, boolean]>();
    const { open } = await http2Place(t, (stream, { ":path": path }) => {
      if (path === "/refused") return stream.close(NGHTTP2_REFUSED_STREAM);
      stream.respond({ ":status": 200 });
      if (path === "/broken") stream.write("half", () => stream.destroy(new Error("half")));
      else if (path === "/gone") stream.write("half", () => stream.session?.destroy());
      else if (path === "/left") {
        stream.resume().once("close", () => left.resolve([stream.rstCode, stream.readableAborted]));
      } else stream.end("whole");
    });
    const session = await open();
    const codeOf = async (path: string): Promise<number | undefined> => {
      const sent = ask(session, { ":path": path, ":method": "POST" });
      await closed(sent.resume());
      return sent.rstCode;
    };
    assert.equal(await codeOf("/refused"), NGHTTP2_REFUSED_STREAM);
    assert.equal(await codeOf("/broken"), NGHTTP2_INTERNAL_ERROR);
    assert.equal(await codeOf("/gone"), NGHTTP2_INTERNAL_ERROR);
    const leaving = ask(session, { ":path": "/left", ":method": "POST" });
    leaving.write("half of a request");
    await headOf(leaving);
    leaving.destroy(new Error("the client leaves"));
    assert.deepEqual(await left.promise, [NGHTTP2_INTERNAL_ERROR, true]);
    assert.equal(await textOf(ask(session)), "whole");
  });

  test("a server that leaves finishes what it began, and the next request takes another connection", async (t) => {
    const gate = Promise.withResolvers<void>();
    const sessions = new Set<unknown>();
    const { open } = await http2Place(t, async (stream, { ":path": path }) => {
      sessions.add(stream.session);
      stream.respond({ ":status": 200 });
      stream.write("begun ");
      if (path !== "/first") return void stream.end("other");
      stream.session?.goaway();
      await gate.promise;
      stream.end("finished");
    });
    const session = await open();
    const first = ask(session, { ":path": "/first" });
    await once(first, "data");
    while (sessions.size < 2) assert.match(await textOf(ask(session)), /other$/);
    gate.resolve();
    assert.equal(await textOf(first), "finished");
  });

  test("a server that answers early ends the rest of the request", async (t) => {
    const { open } = await http2Place(t, (stream) => {
      stream.respond({ ":status": 413 });
      stream.end("enough", () => stream.close(constants.NGHTTP2_NO_ERROR));
    });
    const sent = ask(await open(), { ":method": "POST" });
    sent.write("endless");
    assert.equal(await textOf(sent), "enough");
    await closed(sent);
    assert.equal(sent.rstCode, constants.NGHTTP2_NO_ERROR);
  });

  test("one answer that nobody reads holds up neither the others nor more than its window", async (t) => {
    let written = 0;
    const { open, rules } = await http2Place(t, (stream, { ":path": path }) => {
      stream.respond({ ":status": 200 });
      if (path !== "/endless") return void stream.end("small");
      const chunk = Buffer.alloc(2 ** 16);
      const go = (): void => {
        while (!stream.destroyed) {
          written += chunk.length;
          if (!stream.write(chunk)) return void stream.once("drain", go);
        }
      };
      go();
    });
    const session = await open();
    const stuck = ask(session, { ":path": "/endless" });
    await headOf(stuck);
    for (let n = 0; n < 50; n++) assert.equal(await textOf(ask(session)), "small");
    assert.ok(written < 4 * 2 ** 20, `${written} bytes`);
    rules.set({ ...NETWORK, proxy: { ...NETWORK.proxy, forbiddenDomains: ["api.test"] } });
    await closed(stuck.resume());
    assert.notEqual(stuck.rstCode, 0);
  });

  test("a changed rule cuts what is open and refuses the next request; bytes are counted", async (t) => {
    const bytes = [0, 0];
    const onBytes: EgressOptions["onBytes"] = (_, sent, received) => {
      bytes[0] = (bytes[0] ?? 0) + sent;
      bytes[1] = (bytes[1] ?? 0) + received;
    };
    const counted = Promise.withResolvers<void>();
    let outside = { bytesRead: 0, bytesWritten: 0 };
    const { open, rules, server } = await http2Place(
      t,
      (stream) => {
        stream.respond({ ":status": 200 });
        stream.write(Buffer.alloc(100_000));
      },
      { onBytes },
    );
    server.on("connection", (socket) => {
      outside = socket;
      socket.once("close", counted.resolve);
    });
    const session = await open();
    const sent = ask(session);
    for (let size = 0; size < 100_000; ) size += ((await once(sent, "data")) as [Buffer])[0].length;
    const cut = closed(sent.resume());
    const received = outside.bytesWritten; // the server says goodbye to a connection that is no longer there
    rules.set({ ...NETWORK, firewall: { rules: [{ action: "deny", domains: ["api.test"] }] } });
    await cut;
    assert.notEqual(sent.rstCode, 0);
    const refused = await headOf(ask(session));
    assert.deepEqual([refused[":status"], refused["proxy-error"]], [403, "firewall_blocked"]);
    await counted.promise;
    assert.deepEqual(bytes, [outside.bytesRead, received]);
  });
});

describe("requests and answers in disguise", () => {
  const whole: Answering = (stream, headers) => {
    stream.resume();
    if (!stream.destroyed) stream.respond({ ":status": 200, "x-seen": JSON.stringify(headers) }, { endStream: true });
  };

  test("a request for another host, of another method's spelling or of no path is judged or refused", async (t) => {
    const { open, port, refused } = await http2Place(t, whole, {
      network: { ...NETWORK, firewall: { rules: [{ action: "deny", methods: ["DELETE"] }] } },
    });
    const session = await open();
    const verdict = async (headers: OutgoingHttpHeaders): Promise<unknown[]> => {
      const { ":status": status, "proxy-error": code } = await headOf(ask(session, headers).end());
      return [status, code];
    };
    const own = `api.test:${port}`;
    for (const authority of ["plain.test", "api.test.plain.test"])
      assert.deepEqual(
        await verdict({ ":method": "GET", ":authority": authority }),
        [403, "firewall_blocked"],
        authority,
      );
    for (const method of ["DELETE", "delete", "DeLeTe"])
      assert.deepEqual(await verdict({ ":method": method }), [403, "firewall_blocked"], method);
    assert.deepEqual(await verdict({ ":method": "trace" }), [405, "method_refused"]);
    assert.equal(refused.length, 5);
    const strange = ask(session, { ":authority": `user@${own}` });
    await closed(strange);
    assert.equal(strange.rstCode, NGHTTP2_PROTOCOL_ERROR);
    const seen = await headOf(ask(session, { host: "plain.test", ":authority": own, ":scheme": "http" }));
    const { ":authority": authority, host, ":scheme": scheme } = JSON.parse(String(seen["x-seen"]));
    assert.deepEqual([authority, host, scheme], [own, undefined, "https"], "one host, the judged one");
  });
});
