/** The TypeScript SDK in a browser, without a bundler: modules as they are packed, and an import map. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { openChromium } from "../browser/chromium.ts";
import { CHECKOUT } from "./place.ts";
import { outcomesIn, startReplay, VECTORS } from "./vectors.ts";

const chromium = await openChromium();
const folder = mkdtempSync(join(tmpdir(), "berth-sdk-browser-"));
after(async () => {
  await chromium.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Vectors that need the command line's file; and those whose connection breaks, after which browsers ask once more. */
const isForBrowsers = (index: number): boolean => {
  const vector = VECTORS[index];
  return vector?.profile === undefined && !vector?.exchanges.some(({ reply }) => reply === "hang up");
};

describe("the TypeScript SDK in a browser", { skip: chromium.skip }, () => {
  test("passes the test vectors", async (t) => {
    const tsc = join(CHECKOUT, "node_modules/.bin/tsc");
    execFileSync(tsc, ["-p", join(CHECKOUT, "sdk/typescript"), "--outDir", join(folder, "sdk")]);
    const strip = ["--ignoreConfig", "--noCheck", "--target", "es2022", "--module", "es2022", "--outDir", folder];
    execFileSync(tsc, [...strip, join(CHECKOUT, "test/sdk/typescript/vectors.ts")]);
    const replay = await startReplay(folder);
    t.after(() => replay.stop());
    const server = createServer((asked, response) => {
      const path = asked.url ?? "/";
      if (path === "/") return response.setHeader("content-type", "text/html").end(PAGE);
      if (path.endsWith(".js"))
        return response.setHeader("content-type", "text/javascript").end(readFileSync(join(folder, path)));
      // The vectors, at the origin of the page.
      const passed = request(replay.url + path, { method: asked.method ?? "GET", headers: asked.headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      return asked.pipe(passed.on("error", () => response.destroy()));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { page } = await chromium.person();
    const said: string[] = [];
    page.on("console", (message) => said.push(message.text()));
    await page.goto(url);
    const program = `globalThis.process = { argv: ["", "", ${JSON.stringify(JSON.stringify(VECTORS))}, ${JSON.stringify(url)}], env: {} };
      import("/vectors.js").then(() => "done", (error) => String(error && error.stack))`;
    assert.equal(await page.evaluate(program), "done");
    const outcomes = outcomesIn(said.filter((line) => line.startsWith("{")).join("\n"));
    assert.equal(outcomes.length, VECTORS.length);
    for (const [index, { name }] of VECTORS.entries())
      if (isForBrowsers(index)) await t.test(name, () => replay.check(index, outcomes[index]));
  });
});

const PAGE = `<!doctype html><script type="importmap">{ "imports": { "@berth/sdk": "/sdk/index.js" } }</script>`;
