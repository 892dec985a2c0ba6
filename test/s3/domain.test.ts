/** The S3 door at host names of the server's own port: `s3.DOMAIN` and `BUCKET.s3.DOMAIN`, with TLS. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request } from "node:https";
import type { LookupFunction } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import * as s3 from "@aws-sdk/client-s3";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { openDoor, type S3Keys, type TestDoor } from "./bucket.ts";
import { presigned } from "./signed-request.ts";

/** Every name leads to this machine, as a wildcard record would have it. */
const lookup: LookupFunction = (_host, { all }, done) =>
  all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);

for (const edges of ["0", "1"])
  describe(`the S3 door at s3.DOMAIN, ${edges === "0" ? "the server accepts" : "edge processes accept"}`, () => {
    let door: TestDoor;
    let keys: S3Keys;
    let agent: Agent;
    let s3Url = "";
    let port = 0;
    const clientOf = (options: s3.S3ClientConfig = {}): s3.S3Client =>
      door.client(keys, { requestHandler: new NodeHttpHandler({ httpsAgent: agent }), ...options });

    before(async () => {
      const config = { domain: "berth.test", tls: "auto", edge_processes: edges };
      door = await openDoor({ config });
      port = Number(new URL(door.platform.app.listensAt).port);
      const ca = readFileSync(join(door.platform.dataDir, "tls", "ca.pem"), "utf8");
      agent = new Agent({ ca, lookup, keepAlive: true });
      ({ s3Url } = await door.drive("shared"));
      keys = await door.keys("shared");
    });
    after(async () => {
      agent?.destroy();
      await door?.[Symbol.asyncDispose]();
    });

    test("the record and the credentials name the address, and no other port is open", () => {
      assert.deepEqual(
        [keys.endpoint, s3Url],
        [`https://s3.berth.test:${port}`, `https://s3.berth.test:${port}/shared`],
      );
    });

    test("a stock client puts and gets with the bucket in the host and in the path", async () => {
      const Body = randomBytes(3_000_000);
      for (const forcePathStyle of [false, true]) {
        const client = clientOf({ forcePathStyle });
        const object = { Bucket: "shared", Key: `a/${forcePathStyle} ü` };
        await client.send(new s3.PutObjectCommand({ ...object, Body }));
        const got = await client.send(new s3.GetObjectCommand(object));
        assert.deepEqual(Buffer.from((await got.Body?.transformToByteArray()) ?? []), Body);
      }
      const { Contents } = await clientOf().send(new s3.ListObjectsV2Command({ Bucket: "shared", Prefix: "a/" }));
      assert.deepEqual(
        Contents?.map(({ Key }) => Key),
        ["a/false ü", "a/true ü"],
      );
    });

    test("a client that waits for 100 Continue is refused before it sends the body", async () => {
      const path = presigned(keys, "PUT", "/shared/late");
      const ask = (target: string) => {
        const headers = { host: new URL(keys.endpoint).host, expect: "100-continue", "content-length": "4" };
        return request(`${keys.endpoint}${target}`, { method: "PUT", headers, agent });
      };
      const refused = ask(path.replace("/late", "/other"));
      refused.once("continue", () => refused.destroy(new Error("asked for the body of a wrong signature")));
      refused.flushHeaders();
      const [no] = await once(refused, "response");
      assert.match(await text(no), /SignatureDoesNotMatch/);
      refused.destroy();
      const taken = ask(path);
      taken.once("continue", () => taken.end("late"));
      taken.flushHeaders();
      const [yes] = await once(taken, "response");
      assert.equal(yes.statusCode, 200, await text(yes));
    });

    test("HTTP/2 reaches the door", async (t) => {
      const session = connectHttp2(`https://s3.berth.test:${port}`, { ca: agent.options.ca ?? "", lookup } as object);
      t.after(() => session.destroy());
      const ask = async (method: string, body: string): Promise<[number, string]> => {
        const fields = { ":method": method, ":path": presigned(keys, method, "/shared/h2") };
        const length = body === "" ? {} : { "content-length": body.length };
        const stream = session.request({ ...fields, ...length }, { endStream: body === "" });
        if (body !== "") stream.end(body);
        const [headers] = await once(stream, "response");
        return [headers[":status"], await text(stream)];
      };
      assert.deepEqual(await ask("PUT", "by HTTP/2"), [200, ""]);
      assert.deepEqual(await ask("GET", ""), [200, "by HTTP/2"]);
    });

    test("the host names serve nothing of the platform, and other hosts nothing of the door", async () => {
      const ask = async (host: string, path: string, headers = {}): Promise<[number, string]> => {
        const asked = request({ host, port, path, agent, headers }).end();
        const [answer] = await once(asked, "response");
        return [answer.statusCode, await text(answer)];
      };
      const authorization = `Bearer ${door.platform.apiKey}`;
      for (const host of ["s3.berth.test", "shared.s3.berth.test"])
        for (const path of ["/v0/workspaces", "/healthz", "/console", "/main/sandboxes/x"]) {
          const [status, body] = await ask(host, path, { authorization });
          assert.ok(status >= 400 && body.startsWith("<?xml"), `${host}${path}: ${status} ${body}`);
        }
      const [status] = await ask(
        "other.berth.test",
        presigned({ ...keys, endpoint: `https://other.berth.test:${port}` }, "GET", "/shared/a"),
      );
      assert.equal(status, 404);
    });
  });
