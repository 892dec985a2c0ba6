/** The console of an installation, with a real sandbox: its terminal, files and processes. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, describe, test } from "node:test";
import { openChromium } from "../browser/chromium.ts";
import { heading, look, visitConsole } from "../browser/console-visit.ts";
import { installation } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";
import { apiOf } from "./suite.ts";

const chromium = await openChromium();
const server = await installation();
const { call } = apiOf(server, "main");

describe("the console of an installation", { skip: chromium.skip || workloadsSkip }, () => {
  after(() => chromium.close());

  test("a sandbox has a terminal, files and processes", async (t) => {
    const name = "console-box";
    t.after(() => call("DELETE", `/sandboxes/${name}`));
    assert.equal((await call("POST", "/sandboxes", { body: { metadata: { name }, spec: {} } })).status, 200);
    const { body: link } = await call("POST", "/users/me/console_link");
    await visitConsole(chromium, link.url, server.url, async (page) => {
      const own = `${new URL(link.url).origin}/main/sandboxes/${name}`;
      await page.goto(`${own}?tab=terminal`);
      await page.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
      await page.keyboard.type("echo from-the-terminal > /tmp/note.txt; echo six-$((2*3))\n");
      await page.locator(".xterm-rows").getByText("six-6").waitFor();
      await look(page);
      await page.goto(`${own}?tab=files&folder=/tmp&file=/tmp/note.txt`);
      const editor = page.getByRole("textbox", { name: "/tmp/note.txt" });
      await editor.getByText("from-the-terminal").waitFor();
      await look(page);
      await editor.click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type("and from the editor");
      await page.getByRole("button", { name: "Save" }).click();
      // Nothing is left to be saved, and nothing is under way.
      await page.locator('button[aria-disabled="true"][aria-busy="false"]', { hasText: "Save" }).waitFor();
      await page.getByLabel("Files to upload").setInputFiles({
        ...{ name: "dropped.txt", mimeType: "text/plain" },
        buffer: Buffer.from("dropped"),
      });
      await page.getByRole("button", { name: "dropped.txt" }).waitFor();
      // The second part is refused once; what is there already is not sent again.
      let sent = 0;
      await page.route("**/filesystem-multipart/*/part?*", (route) => {
        if (route.request().method() !== "PUT") return route.continue();
        sent += 1;
        const headers = { "access-control-allow-origin": new URL(link.url).origin };
        return sent === 2 ? route.fulfill({ status: 413, headers, json: { error: "Cut off." } }) : route.continue();
      });
      const buffer = Buffer.alloc(17 * 2 ** 20, "0123456789abcdef");
      await page
        .getByLabel("Files to upload")
        .setInputFiles({ name: "large.bin", mimeType: "application/octet-stream", buffer });
      await page.getByText("Cut off.").waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("button", { name: "large.bin" }).waitFor();
      assert.equal(sent, 4);
      await page.getByRole("link", { name: "Processes" }).click();
      await page.getByLabel("Command").fill("md5sum < /tmp/large.bin");
      await page.keyboard.press("Enter");
      await page.getByText(createHash("md5").update(buffer).digest("hex")).waitFor();
      await page.getByLabel("Command").fill("cat /tmp/note.txt /tmp/dropped.txt");
      await page.keyboard.press("Enter");
      await page.getByText("and from the editor").waitFor();
      await look(page);
    });
  });

  /** Runs a command in a new sandbox that has the volume at /disk, and answers with its output. */
  const inSandbox = async (name: string, volume: string, command: string): Promise<string> => {
    const spec = { volumes: [{ name: volume, mountPath: "/disk" }] };
    assert.equal((await call("POST", "/sandboxes", { body: { metadata: { name }, spec } })).status, 200);
    try {
      const response = await fetch(`${server.url}/main/sandboxes/${name}/process`, {
        method: "POST",
        headers: { authorization: `Bearer ${server.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ command, waitForCompletion: true }),
      });
      const { exitCode, logs } = (await response.json()) as { exitCode: number; logs: string };
      assert.equal(exitCode, 0, logs);
      return logs;
    } finally {
      await call("DELETE", `/sandboxes/${name}`);
    }
  };

  test("a volume is copied by snapshot, restore and clone, and asks for snapshots by a schedule", async (t) => {
    const names = ["console-disk", "console-restored", "console-cloned"];
    t.after(async () => {
      for (const name of names.toReversed()) await call("DELETE", `/volumes/${name}`);
    });
    const [name = ""] = names;
    const made = await call("POST", "/volumes", { body: { metadata: { name }, spec: { size: 16 } } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    await inSandbox("console-writer", name, "echo kept > /disk/note.txt && sync");
    const { body: link } = await call("POST", "/users/me/console_link");
    await visitConsole(chromium, link.url, server.url, async (page) => {
      const own = `${new URL(link.url).origin}/main/volumes/${name}?tab=volumesnapshots`;
      await page.goto(own);
      await page.getByText("No snapshots yet").waitFor();
      await page.getByRole("button", { name: "Take a snapshot" }).click();
      await page.getByRole("cell", { name: "ready" }).waitFor();
      const copy = async (button: string | RegExp, target: string): Promise<void> => {
        await page.getByRole("button", { name: button }).click();
        await page.getByLabel("Name of the new volume").fill(target);
        await page.getByRole("button", { name: "Make the volume" }).click();
        await heading(page, target);
        await page.goto(own);
      };
      await copy(/^Restore snap_/, "console-restored");
      await copy("Clone as it is now", "console-cloned");
      await page.getByLabel("Schedule", { exact: true }).fill("0 3 * * *");
      await page.getByLabel("Keep the newest").fill("3");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The schedule is kept.").waitFor();
      await look(page);
      await page.getByRole("button", { name: /^Delete snap_/ }).click();
      await page.getByText("No snapshots yet").waitFor();
    });
    const { body: kept } = await call("GET", `/volumes/${name}`);
    assert.deepEqual(kept.spec.snapshots, { schedule: "0 3 * * *", keep: 3 });
    for (const copy of names.slice(1))
      assert.match(await inSandbox(`${copy}-reader`, copy, "cat /disk/note.txt"), /^kept\b/);
  });
});
