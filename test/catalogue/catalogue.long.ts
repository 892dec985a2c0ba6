/** Images of the catalogue, built by the server from Debian's packages, used by real clients through the gateway. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";
import { catalogueImages } from "../../src/contract/catalogue.ts";
import { runBerth } from "../berth-process.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";
import { eventually } from "../sandboxd-harness.ts";

describe("the catalogue", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  before(() => suite.start({ standby_after: "600" }));
  after(() => suite.stop());

  const address = (name: string, port: number): string => `${suite.platform().url}/main/sandboxes/${name}/port/${port}`;
  const headers = (): Record<string, string> => ({ authorization: `Bearer ${suite.platform().apiKey}` });

  /** Builds the image with those that it stands on. Answers why it cannot be built: the machine reaches no registry. */
  async function missing(image: string): Promise<string | false> {
    const { url, apiKey } = suite.platform();
    const env = { BERTH_URL: url, BERTH_API_KEY: apiKey, BERTH_WORKSPACE: "main" };
    const { code, stderr } = await runBerth(["image", "catalogue", image], { env });
    if (code === 0) return false;
    assert.match(
      stderr,
      /Could not resolve|Unable to (?:fetch|locate)|ENOTFOUND|EAI_AGAIN|apt-get: (?:command )?not found/,
    );
    return "the machine has no apt, or reaches no registry of packages";
  }

  /** A program that a connection starts may need longer than the gateway waits. */
  const serves = (name: string, port: number, path: string): Promise<void> =>
    eventually(async () => (await fetch(`${address(name, port)}${path}`, { headers: headers() })).status === 200);

  test("every image is described", () => {
    for (const { name, about } of catalogueImages()) assert.match(about, /^[A-Z].+\.$/, name);
  });

  test("browser: a client of the DevTools protocol opens a page", async (t) => {
    const lacks = await missing("browser");
    if (lacks) return t.skip(lacks);
    await suite.create("browser", { runtime: { image: "browser", memory: 2048 } });
    await serves("browser", 9222, "/json/version");
    const browser = await chromium.connectOverCDP(address("browser", 9222), { headers: headers() });
    try {
      const page = await browser.newPage();
      await page.setContent("<title>shown</title><button onclick=\"document.title = 'pressed'\">Press</button>");
      await page.click("button");
      assert.equal(await page.title(), "pressed");
      assert.ok((await page.screenshot()).length > 1_000);
    } finally {
      await browser.close();
    }
  });

  test("desktop: a VNC client gets a picture over a WebSocket, and keys arrive", async (t) => {
    const lacks = await missing("desktop");
    if (lacks) return t.skip(lacks);
    await suite.create("desktop", { runtime: { image: "desktop", memory: 1024 } });
    await serves("desktop", 6080, "/vnc.html");
    const vnc = await openVnc(`${address("desktop", 6080)}/websockify`, suite.platform().apiKey);
    try {
      assert.match((await vnc.read(12)).toString("latin1"), /^RFB 003\.\d{3}\n$/);
      vnc.write(Buffer.from("RFB 003.008\n"));
      const [kinds = 0] = await vnc.read(1);
      assert.ok((await vnc.read(kinds)).includes(1), "no password inside: the gateway asks who comes");
      vnc.write(Buffer.from([1]));
      assert.equal((await vnc.read(4)).readUInt32BE(0), 0);
      vnc.write(Buffer.from([1]));
      const init = await vnc.read(24);
      assert.deepEqual([init.readUInt16BE(0), init.readUInt16BE(2)], [1280, 800]);
      await vnc.read(init.readUInt32BE(20));
      vnc.write(Buffer.from([3, 0, 0, 0, 0, 0, 0, 16, 0, 16]));
      const update = await vnc.read(16);
      assert.deepEqual([update[0], update.readUInt16BE(2) > 0], [0, true]);
    } finally {
      vnc.close();
    }
    const type =
      "xdotool search --sync --onlyvisible --class xterm windowactivate --sync type 'echo typed > /tmp/typed'";
    assert.equal((await suite.exec("desktop", `${type} && xdotool key Return`)).body.exitCode, 0);
    await eventually(async () => (await suite.exec("desktop", "cat /tmp/typed")).body.stdout === "typed\n");
  });

  test("python and node need nothing of the machine", async (t) => {
    const lacks = (await missing("python")) || (await missing("node"));
    if (lacks) return t.skip(lacks);
    await suite.create("python", { runtime: { image: "sandbox/python", memory: 512 } });
    const { body } = await suite.exec("python", "python -c 'import ssl, venv; print(1 + 1)' && pip --version");
    assert.match(body.stdout, /^2\npip /);
    await suite.create("node", { runtime: { image: "sandbox/node", memory: 512 } });
    assert.match((await suite.exec("node", "node -p 1+1 && npm --version")).body.stdout, /^2\n11\./);
  });
});

interface Vnc {
  /** The next bytes of the VNC server, without the frames of the WebSocket. */
  read(bytes: number): Promise<Buffer>;
  write(bytes: Buffer): void;
  close(): void;
}

/** The protocol of VNC in binary messages of a WebSocket. */
async function openVnc(url: string, apiKey: string): Promise<Vnc> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}?token=${apiKey}`, ["binary"]);
  socket.binaryType = "arraybuffer";
  let received = Buffer.alloc(0);
  socket.addEventListener("message", ({ data }) => {
    received = Buffer.concat([received, Buffer.from(data as ArrayBuffer)]);
  });
  await eventually(() => socket.readyState === WebSocket.OPEN);
  return {
    async read(bytes) {
      await eventually(() => received.length >= bytes);
      const part = received.subarray(0, bytes);
      received = received.subarray(bytes);
      return part;
    },
    write: (bytes) => socket.send(bytes),
    close: () => socket.close(),
  };
}
