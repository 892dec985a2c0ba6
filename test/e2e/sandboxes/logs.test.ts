/** What processes in sandboxes write can be read like any workload's output, for as long as logs are kept. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { machineSkip, sandboxSuite } from "../../sandbox-suite.ts";

describe("logs of sandboxes on this machine", { skip: machineSkip }, () => {
  const suite = sandboxSuite();
  const { create, exec } = suite;
  before(() => suite.start());
  after(() => suite.stop());

  interface Line {
    message: string;
    severity: number;
  }
  const linesOf = async (name: string): Promise<Line[]> => {
    const path = `/observability/logs?resourceType=sandboxes&workloadIds=${name}`;
    const { status, body } = await suite.platform().call<Record<string, { logs: Line[] }>>("GET", path);
    assert.equal(status, 200, JSON.stringify(body));
    return body[name]?.logs.toReversed() ?? [];
  };
  const wrote = async (name: string, ...words: string[]): Promise<Line[]> => {
    for (;;) {
      const lines = await linesOf(name);
      if (words.every((word) => lines.some(({ message }) => message === word))) return lines;
      await delay(50);
    }
  };

  test("lines of its processes, with their severity, over a restart of the server and after its end", async () => {
    await create("box");
    await exec("box", "echo hello; echo 'ERROR: bad' >&2");
    // Two streams, each read for itself: which comes first is nobody's promise.
    const lines = await wrote("box", "hello", "ERROR: bad");
    assert.deepEqual(lines.map(({ message, severity }) => [message, severity]).toSorted(), [
      ["ERROR: bad", 17],
      ["hello", 9],
    ]);
    await suite.restart();
    await exec("box", "echo again");
    assert.equal((await wrote("box", "again")).length, 3, "no line twice");
    await suite.platform().call("DELETE", "/sandboxes/box");
    assert.equal((await linesOf("box")).length, 3);
  });

  test("none where the workspace does not want them", async () => {
    const { call } = suite.platform();
    const { body } = await call("GET", "/workspaces/main");
    const runtime = { sandbox: { disableProcessLogging: true } };
    assert.equal((await call("PUT", "/workspaces/main", { body: { ...body, runtime } })).status, 200);
    await create("silent");
    await exec("silent", "echo secret");
    await call("DELETE", "/sandboxes/silent");
    assert.deepEqual(await linesOf("silent"), []);
  });
});
