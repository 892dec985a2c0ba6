/** A platform on this machine's own driver, and what tests of deployed code do with it again and again. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Ended, runBerth } from "./berth-process.ts";
import { type Answer, startTestPlatform, type TestPlatform, type TestPlatformOptions } from "./platform.ts";
import { projectArchive } from "./project-archive.ts";

const LOOK_MS = 50;
const PATIENCE_MS = 120_000;
const KINDS = ["agents", "functions", "applications", "jobs", "sandboxes"];

export type Files = Record<string, string | Buffer>;

/** A server that says its word, streams, and ends on request. */
export const says = (word: string): Record<string, string> => ({
  "index.js": `
    const http = require("node:http");
    http.createServer((request, response) => {
      if (request.url === "/stream") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("data: first\\n\\n");
        request.on("data", () => response.end("data: last\\n\\n"));
      } else if (request.url === "/end") process.exit(3);
      else response.end(JSON.stringify({ word: "${word}", greeting: process.env.GREETING, name: process.env.BL_NAME }));
    }).listen(process.env.PORT, process.env.HOST, () => console.error("up"));`,
});

export const isDeployed = ({ status }: Answer["body"]): boolean => status === "DEPLOYED";
export const hasFailed = ({ status }: Answer["body"]): boolean => status === "FAILED";

export function deploySuite(config: TestPlatformOptions["config"] = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-deploy-"));
  let platform: TestPlatform;
  const call: TestPlatform["call"] = (method, path, options) =>
    platform.call(method, path, { workspace: "main", ...options });

  const ask = (path: string, init: RequestInit = {}, plural = "agents"): Promise<Response> =>
    fetch(`${platform.url}/main/${plural}/${path}`, {
      ...init,
      headers: { "x-service-authorization": `Bearer ${platform.apiKey}`, ...init.headers },
    });

  const until = async <T>(look: () => Promise<T>, done: (seen: T) => boolean): Promise<T> => {
    const giveUp = Date.now() + PATIENCE_MS;
    for (;;) {
      const seen = await look();
      if (done(seen)) return seen;
      if (Date.now() > giveUp) throw new Error(`still ${JSON.stringify(seen)}`);
      await pause(LOOK_MS);
    }
  };

  /** Sends the archive to where the answer says. */
  const send = async (made: Answer, files: Files): Promise<Response> => {
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.status, "UPLOADING");
    const url = made.headers.get("x-service-upload-url") ?? "";
    return fetch(url, { method: "PUT", body: projectArchive(files), headers: { "content-type": "application/gzip" } });
  };

  const copies = async (name: string, kind = "agent"): Promise<{ uid: string; phase: string; revision: string }[]> => {
    const found = await platform.app.store.resources.get({ workspace: "main", kind, parent: "" }, name);
    return (found?.state.copies ?? []) as { uid: string; phase: string; revision: string }[];
  };

  return {
    dataDir,
    platform: (): TestPlatform => platform,
    call,
    ask,
    until,
    send,
    copies,
    async start(): Promise<void> {
      platform = await startTestPlatform({ driver: "real", dataDir, config: { idle_after: "2", ...config } });
    },
    async stop(): Promise<void> {
      try {
        for (const plural of KINDS)
          for (const { metadata } of (await call("GET", `/${plural}`)).body.data)
            await call("DELETE", `/${plural}/${metadata.name}`);
      } finally {
        await platform.stop();
        rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
      }
    },
    async create(name: string, files: Files, spec: object = {}, plural = "agents"): Promise<void> {
      const memory = plural === "applications" ? { memory: 512 } : { runtime: { memory: 512 } };
      const body = { metadata: { name }, spec: { ...memory, ...spec } };
      const sent = await send(await call("POST", `/${plural}?upload=true`, { body }), files);
      assert.equal(sent.status, 200, await sent.text());
    },
    /** A new revision with other code. */
    async update(name: string, files: Files, plural = "agents"): Promise<void> {
      const { body } = await call("GET", `/${plural}/${name}`);
      const sent = await send(await call("PUT", `/${plural}/${name}?upload=true`, { body }), files);
      assert.equal(sent.status, 200, await sent.text());
    },
    /** Changes the specification as it is. */
    async change(name: string, spec: object, plural = "agents"): Promise<void> {
      const { body } = await call("GET", `/${plural}/${name}`);
      const put = await call("PUT", `/${plural}/${name}`, { body: { ...body, spec: { ...body.spec, ...spec } } });
      assert.equal(put.status, 200, JSON.stringify(put.body));
    },
    reaches: (name: string, done: (resource: Answer["body"]) => boolean, plural = "agents"): Promise<Answer["body"]> =>
      until(async () => (await call("GET", `/${plural}/${name}`)).body, done),
    async untilCopies(name: string, count: number): Promise<void> {
      await until(
        () => copies(name),
        ({ length }) => length === count,
      );
    },
    async wordOf(name: string, plural = "agents"): Promise<string> {
      const answer = await ask(name, {}, plural);
      assert.equal(answer.status, 200, await answer.clone().text());
      return ((await answer.json()) as { word: string }).word;
    },
    /** The command line, against this platform. A command that fails throws its end. */
    async berth(args: string[], options: { cwd?: string } = {}): Promise<Ended> {
      const env = { BERTH_URL: platform.url, BERTH_API_KEY: platform.apiKey, BERTH_WORKSPACE: "main" };
      const ended = await runBerth(args, { env, ...options });
      if (ended.code !== 0) throw Object.assign(new Error(ended.stderr), ended);
      return ended;
    },
  };
}
