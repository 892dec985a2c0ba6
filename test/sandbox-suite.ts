/** Sandboxes of a test on this machine's own driver: real namespaces, processes and files, reached through the gateway. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { localDriverMissing } from "./local/machine.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "./platform.ts";

export const machineSkip: string | false = localDriverMissing ?? false;

export interface SandboxSuite {
  platform(): TestPlatform;
  start(config?: Record<string, string>): Promise<void>;
  /** The server ends and a new one takes over; sandboxes go on. */
  restart(config?: Record<string, string>): Promise<void>;
  stop(): Promise<void>;
  inside(name: string, method: string, path: string, body?: unknown): Promise<Pick<Answer, "status" | "body">>;
  exec(name: string, command: string): Promise<Pick<Answer, "status" | "body">>;
  create(name: string, spec?: object, metadata?: object): Promise<Answer["body"]>;
  reaches(
    name: string,
    until: (sandbox: {
      state: string;
      status: string;
      events: { type: string; message?: string | undefined }[];
    }) => boolean,
  ): Promise<void>;
}

/** `dataDir`: a folder that the suite removes at its end. */
export function sandboxSuite(dataDir = mkdtempSync(join(tmpdir(), "berth-machine-"))): SandboxSuite {
  let running: TestPlatform;
  const start: SandboxSuite["start"] = async (config = {}) => {
    running = await startTestPlatform({ driver: "real", dataDir, config });
  };
  const inside: SandboxSuite["inside"] = async (name, method, path, body) => {
    const answer = await fetch(`${running.url}/main/sandboxes/${name}${path}`, {
      method,
      headers: { "x-service-authorization": `Bearer ${running.apiKey}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text };
  };
  return {
    platform: () => running,
    start,
    async restart(config) {
      await running.stop();
      await start(config);
    },
    async stop() {
      for (const { metadata } of (await running.call("GET", "/sandboxes")).body.data)
        await running.call("DELETE", `/sandboxes/${metadata.name}`);
      await running.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
    },
    inside,
    exec: (name, command) => inside(name, "POST", "/process", { command, waitForCompletion: true, timeout: 60 }),
    async create(name, spec = {}, metadata = {}) {
      const made = await running.call("POST", "/sandboxes", {
        body: { metadata: { name, ...metadata }, spec: { runtime: { memory: 512 }, ...spec } },
      });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      return made.body;
    },
    async reaches(name, until) {
      const { resources } = running.app.store;
      const { workspace, uid } =
        (await resources.get({ workspace: "main", kind: "sandbox", parent: "" }, name)) ?? assert.fail();
      await resources.waitFor(
        workspace,
        uid,
        (now) => until({ state: String(now?.state.compute), status: String(now?.status), events: now?.events ?? [] }),
        { signal: AbortSignal.timeout(90_000) },
      );
    },
  };
}
