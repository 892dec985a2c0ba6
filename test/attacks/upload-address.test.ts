/** An upload address is a permission for one archive: many requests to it at once fill no disk. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { after, before, describe, test } from "node:test";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { zip } from "../zip-archive.ts";

const SENDERS = 5;

describe("one upload address, many senders", () => {
  const machine = new FakeMachine();
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform({ driver: fakeDriver(machine) });
  });
  after(async () => {
    await platform?.stop();
    await machine.dispose();
  });

  test("one archive arrives, the other senders are refused at once, and a broken one leaves the address open", async () => {
    const body = { metadata: { name: "flooded" }, spec: { runtime: { type: "mcp" } } };
    const made = await platform.call("POST", "/functions?upload=true", { workspace: "main", body });
    const address = new URL(made.headers.get("x-service-upload-url") ?? assert.fail(JSON.stringify(made.body)));
    const archive = zip([{ path: "package.json", content: "{}" }]);
    const { hostname, port } = new URL(platform.url);
    const begin = (): ClientRequest => {
      const headers = { "content-type": "application/zip", "content-length": String(archive.length) };
      const sender = request({ host: hostname, port, method: "PUT", path: address.pathname, headers, agent: false });
      sender.on("error", () => {}); // one of them is broken off
      sender.write(archive.subarray(0, 10));
      return sender;
    };
    const answerOf = async (sender: ClientRequest): Promise<number | undefined> => {
      const [answer] = (await once(sender, "response")) as [IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };
    const senders = Array.from({ length: SENDERS }, begin);
    const left = new Set(senders);
    const refused: (number | undefined)[] = [];
    await new Promise<void>((resolve) => {
      for (const sender of senders)
        sender.once("response", (answer: IncomingMessage) => {
          answer.resume();
          refused.push(answer.statusCode);
          left.delete(sender);
          if (left.size === 1) resolve();
        });
    });
    assert.deepEqual(refused, Array(SENDERS - 1).fill(409));
    const [last] = left;
    assert.ok(last);
    last.destroy();
    // The server sees the end of the broken request a moment later; until then it refuses further ones.
    for (let status: number | undefined = 409; status === 409; ) {
      const whole = begin();
      whole.end(archive.subarray(10));
      status = await answerOf(whole);
      assert.ok(status === 409 || status === 200, String(status));
    }
  });
});
