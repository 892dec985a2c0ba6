/** The receiver of callbacks in the guide is a program that works. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { signWebhook } from "../../src/lib/network/webhook-signature.ts";
import { freePort } from "../free-port.ts";
import { until } from "./agent-world.ts";

test("the receiver of the guide takes what is signed and refuses the rest", async () => {
  const [, code = ""] = /```js\n(\/\/ receiver\.js[\s\S]*?)```/.exec(readFileSync("docs/triggers.md", "utf8")) ?? [];
  const dir = mkdtempSync(join(tmpdir(), "berth-docs-"));
  writeFileSync(join(dir, "receiver.mjs"), code);
  const port = await freePort();
  const env = { PATH: process.env.PATH, CALLBACK_SECRET: "hush", PORT: String(port) };
  const child = spawn(process.execPath, [join(dir, "receiver.mjs")], { env, stdio: ["ignore", "ignore", "inherit"] });
  after(() => {
    child.kill();
    rmSync(dir, { recursive: true, force: true });
  });
  const body = JSON.stringify({ status_code: 200 });
  const post = (secret: string, nowMs: number): Promise<number | null> => {
    const { signature, timestamp } = signWebhook(secret, body, nowMs);
    const headers = { "x-service-signature": signature, "x-service-timestamp": timestamp };
    return fetch(`http://127.0.0.1:${port}/done`, { method: "POST", headers, body }).then(
      ({ status }) => status,
      () => null,
    );
  };
  assert.equal(await until("it listens", () => post("hush", Date.now())), 204);
  assert.equal(await post("wrong", Date.now()), 401);
  assert.equal(await post("hush", Date.now() - 301_000), 401);
});
