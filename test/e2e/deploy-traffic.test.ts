/** Requests to deployed code on this machine: through roll-outs, shares, streams, storage and scale-down. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { deploySuite, type Files, isDeployed, says } from "../deploy-suite.ts";
import { machineSkip } from "../sandbox-suite.ts";

/** Speaks everything that passes through the gateway, with nothing but Node. */
const speaker = {
  "index.js": `
    const http = require("node:http");
    const { createHash } = require("node:crypto");
    const { appendFileSync, readFileSync, writeFileSync } = require("node:fs");
    let release = () => {};
    const server = http.createServer(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url, "http://x");
      if (pathname === "/events") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("data: first\\n\\n");
        release = () => response.end("data: last\\n\\n");
        return;
      }
      if (pathname === "/release") { release(); return response.end("{}"); }
      if (pathname === "/hash") {
        const hash = createHash("sha256");
        let bytes = 0;
        for await (const chunk of request) { hash.update(chunk); bytes += chunk.length; }
        return response.end(JSON.stringify({ hash: hash.digest("hex"), bytes }));
      }
      if (pathname === "/bytes") {
        const chunk = Buffer.alloc(1024 * 1024, 7);
        for (let n = 0; n < Number(searchParams.get("mb")); n++) if (!response.write(chunk)) await new Promise((done) => response.once("drain", done));
        return response.end();
      }
      if (pathname === "/write") { appendFileSync(searchParams.get("file"), searchParams.get("text")); return response.end("{}"); }
      if (pathname === "/read") { return response.end(readFileSync(searchParams.get("file"))); }
      response.end(JSON.stringify({ pid: process.pid }));
    });
    server.on("upgrade", (request, socket) => {
      const key = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
      socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + key + "\\r\\n\\r\\n");
      const text = Buffer.from("hello from inside");
      socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
      // What the other side still sends, or how it ends, must not end the whole server.
      socket.once("data", () => socket.end(Buffer.from([0x88, 0])));
      socket.on("error", () => {});
    });
    server.listen(process.env.PORT, process.env.HOST);`,
};

describe("traffic to deployed code", { skip: machineSkip }, () => {
  const suite = deploySuite({ idle_after: "60", pool_size: "0" });
  const { ask, call, change, copies, create, reaches, until, update, wordOf } = suite;
  before(suite.start);
  after(suite.stop);

  test("requests to a copy that has just ended wait for the next one", async () => {
    await create("frail", says("still here"));
    await reaches("frail", isDeployed);
    assert.equal(await wordOf("frail"), "still here");
    // It ends in the middle of this request, which cannot be sent to another copy.
    await ask("frail/end").catch(() => null);
    const answers = await Promise.all([ask("frail"), ask("frail", { method: "POST", body: "x" }), ask("frail")]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    await Promise.all(answers.map((answer) => answer.text()));
  });

  test("a roll-out under continuous requests drops none", async (t) => {
    await create("busy", says("one"));
    await reaches("busy", isDeployed);
    const heard: string[] = [];
    let stop = false;
    t.after(() => {
      stop = true;
    });
    const clients = Array.from({ length: 4 }, async () => {
      while (!stop) heard.push(await wordOf("busy"));
    });
    await update("busy", says("two"));
    await until(
      async () => heard.at(-1),
      (word) => word === "two",
    );
    await until(
      () => copies("busy"),
      (all) => all.every(({ revision }) => revision === "2"),
    );
    stop = true;
    await Promise.all(clients);
    assert.deepEqual([...new Set(heard)].sort(), ["one", "two"]);
    assert.equal(heard.at(-1), "two");
    const { body } = await suite.call("GET", "/agents/busy/revisions");
    assert.deepEqual(
      body.map(({ id, active, previousActive }: Record<string, unknown>) => [id, active, previousActive]),
      [
        ["2", true, false],
        ["1", false, true],
      ],
    );
  });

  test("a canary gets its share, and a client stays with what it got", async () => {
    await change("busy", { revision: { active: "2", canary: "1", canaryPercent: 50, stickySessionTtl: 60 } });
    const words = new Set<string>();
    await until(
      async () => words.add(await wordOf("busy")).size,
      (size) => size === 2,
    );
    const first = await ask("busy");
    const [cookie = ""] = (first.headers.get("set-cookie") ?? "").split(";");
    const { word } = (await first.json()) as { word: string };
    for (let n = 0; n < 12; n += 1) {
      const again = await ask("busy", { headers: { cookie } });
      assert.equal(((await again.json()) as { word: string }).word, word);
    }
    await change("busy", { revision: { active: "2" } });
    assert.equal(await wordOf("busy"), "two");
    await until(
      () => copies("busy"),
      (all) => all.every(({ revision }) => revision === "2"),
    );
  });

  /** New code with another choice of revisions. */
  const deploy = async (name: string, files: Files, revision: object | undefined): Promise<void> => {
    const { body } = await call("GET", `/agents/${name}`);
    const sent = await call("PUT", `/agents/${name}?upload=true`, {
      body: { ...body, spec: { ...body.spec, revision } },
    });
    assert.equal((await suite.send(sent, files)).status, 200);
  };
  const shows = (name: string, wanted: unknown[][]): Promise<unknown> =>
    until(
      async () => {
        const { body } = await call("GET", `/agents/${name}/revisions`);
        return body.map((each: Record<string, unknown>) => [each.id, each.active, each.trafficPercent, each.status]);
      },
      (seen) => JSON.stringify(seen) === JSON.stringify(wanted),
    );

  test("a deployment with a share is the canary, and one that says nothing changes no traffic", async () => {
    await deploy("busy", says("three"), { traffic: 50 });
    await shows("busy", [
      ["5", false, 50, undefined],
      ["2", true, 50, "DEPLOYED"],
      ["1", false, 0, undefined],
    ]);
    const words = new Set<string>();
    await until(
      async () => words.add(await wordOf("busy")).size,
      (size) => size === 2,
    );
    assert.deepEqual([...words].sort(), ["three", "two"]);
    const { events } = (await call("GET", "/agents/busy")).body;
    const admitted = events.findLast(({ type }) => type === "canary");
    assert.deepEqual([admitted?.revision, admitted?.canaryRevision], ["5", "5"]);

    await deploy("busy", says("four"), undefined);
    await shows("busy", [
      ["6", false, 0, undefined],
      ["5", false, 50, undefined],
      ["2", true, 50, "DEPLOYED"],
      ["1", false, 0, undefined],
    ]);
    await change("busy", { revision: { active: "5" } });
    await until(
      () => wordOf("busy"),
      (word) => word === "three",
    );
  });

  test("after a deployment that failed, revisions show which one really answers", async () => {
    await create("fallen", says("stands"));
    await reaches("fallen", isDeployed);
    await deploy("fallen", { "index.js": "process.exit(3)" }, undefined);
    const answering = [
      ["2", false, 0, "FAILED"],
      ["1", true, 100, "DEPLOYED"],
    ];
    await shows("fallen", answering);
    assert.equal((await call("GET", "/agents/fallen")).body.status, "FAILED");
    assert.equal(await wordOf("fallen"), "stands");
    await deploy("fallen", { "notes.txt": "nothing to run" }, { traffic: 90 });
    await shows("fallen", [["3", false, 0, "FAILED"], ...answering]);
    for (let n = 0; n < 8; n += 1) assert.equal(await wordOf("fallen"), "stands");
  });

  test("events, a socket and large bodies pass as they come", async (t) => {
    await create("speaker", speaker);
    await reaches("speaker", isDeployed);
    const events = (await ask("speaker/events")).body?.getReader();
    const read = async (): Promise<string> => Buffer.from((await events?.read())?.value ?? "").toString();
    assert.equal(await read(), "data: first\n\n");
    await ask("speaker/release");
    assert.equal(await read(), "data: last\n\n");

    const { url, apiKey } = suite.platform();
    const socket = new WebSocket(`${url.replace("http", "ws")}/main/agents/speaker/socket`, {
      headers: { "x-service-authorization": `Bearer ${apiKey}` },
    });
    t.after(() => socket.terminate());
    const [message] = await once(socket, "message");
    assert.equal(String(message), "hello from inside");
    socket.send("done");
    await once(socket, "close");

    const part = Buffer.alloc(1024 * 1024, 3);
    const hash = createHash("sha256");
    for (let n = 0; n < 32; n += 1) hash.update(part);
    const body = Readable.toWeb(Readable.from(Array.from({ length: 32 }, () => part)));
    const sent = await ask("speaker/hash", { method: "POST", body, duplex: "half" } as unknown as RequestInit);
    assert.deepEqual(await sent.json(), { hash: hash.digest("hex"), bytes: 32 * part.length });
    let bytes = 0;
    for await (const chunk of (await ask("speaker/bytes?mb=32")).body ?? []) bytes += chunk.length;
    assert.equal(bytes, 32 * 1024 * 1024);
  });

  test("volumes and drives are there, and what is written stays", async () => {
    for (const [plural, name] of [
      ["volumes", "disk"],
      ["drives", "shared"],
      ["drives", "guarded"],
    ] as const) {
      const permissions = name === "guarded" ? { permissions: [{ labels: {}, mode: "read" }] } : {};
      const size = plural === "volumes" ? { size: 64 } : {};
      const made = await call("POST", `/${plural}`, {
        body: { metadata: { name }, spec: { ...size, ...permissions } },
      });
      assert.equal(made.status, 200, JSON.stringify(made.body));
    }
    await create("keeper", speaker, {
      volumes: [{ name: "disk", mountPath: "/disk" }],
      drives: [
        { name: "shared", mountPath: "/shared" },
        { name: "guarded", mountPath: "/guarded" },
      ],
    });
    await reaches("keeper", isDeployed);
    for (const file of ["/disk/a", "/shared/a"]) await ask(`keeper/write?file=${file}&text=kept`);
    await create("reader", speaker, {
      drives: [{ name: "shared", mountPath: "/other", readOnly: true }],
      volumes: [{ name: "scratch", type: "ephemeral", mountPath: "/scratch", sizeMb: 16 }],
    });
    const { uid } = (await reaches("reader", isDeployed)).metadata;
    assert.equal(await (await ask("reader/read?file=/other/a")).text(), "kept");
    await ask("reader/write?file=/scratch/a&text=gone");
    const scratch = globSync(join(suite.dataDir, "**/volumes", `${uid}*`));
    assert.equal(scratch.length, 1);
    assert.equal((await call("DELETE", "/agents/reader")).status, 200);
    await until(
      async () => scratch.filter((path) => existsSync(path)),
      (left) => left.length === 0,
    );
    await update("keeper", { ...speaker, "note.txt": "another revision" });
    await until(
      () => copies("keeper"),
      (all) => all.length === 1 && all[0]?.revision === "2" && all[0].phase === "ready",
    );
    assert.equal(await (await ask("keeper/read?file=/disk/a")).text(), "kept");
    assert.equal((await call("DELETE", "/drives/shared")).status, 409);
    const missing = await call("POST", "/agents", {
      body: { metadata: { name: "lost" }, spec: { drives: [{ name: "nowhere", mountPath: "/x" }] } },
    });
    assert.match(missing.body.message, /nowhere/);
  });

  test("a drive whose rules forbid it keeps the code from starting, and says why", async () => {
    const spec = { permissions: [{ labels: { team: "red" }, mode: "read-write" }] };
    await call("POST", "/drives", { body: { metadata: { name: "red-only" }, spec } });
    await create("blue", speaker, { drives: [{ name: "red-only", mountPath: "/red" }] });
    const { events } = await reaches("blue", ({ status }) => status === "FAILED");
    assert.match(events.at(-1).message, /access denied.*red-only/);
  });

  test("a copy that is let go finishes what it has", async (t) => {
    const upload = new TransformStream<Uint8Array, Uint8Array>();
    const writer = upload.writable.getWriter();
    const open = { method: "POST", body: upload.readable, duplex: "half" } as unknown as RequestInit;
    const held = ask("speaker/hash", open);
    t.after(() => writer.abort().catch(() => {})); // closed already, where the test went well
    await writer.write(Buffer.from("half, "));
    const old = (await copies("speaker"))[0]?.uid;
    await update("speaker", { ...speaker, "note.txt": "another revision" });
    const draining = await until(
      () => copies("speaker"),
      (all) => all.some(({ phase }) => phase === "draining"),
    );
    assert.deepEqual(draining.find(({ phase }) => phase === "draining")?.uid, old);
    assert.equal((await ask("speaker")).status, 200, "the new one answers meanwhile");
    await writer.write(Buffer.from("and the rest"));
    await writer.close();
    assert.equal(((await (await held).json()) as { bytes: number }).bytes, "half, and the rest".length);
    await until(
      () => copies("speaker"),
      (all) => all.length === 1 && all[0]?.uid !== old,
    );
  });
});
