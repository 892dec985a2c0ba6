import assert from "node:assert/strict";
import { test } from "node:test";
import type { Driver } from "../node/driver.ts";
import { lazyDriver } from "../node/lazy-driver.ts";
import { keepOpening } from "./opening.ts";

test("a machine that comes up later is opened, and each reason is told once", async () => {
  const reasons = ["Docker does not answer.", "Docker does not answer.", "Docker is too old."];
  const driver = lazyDriver({
    name: "docker",
    node: "here",
    async open() {
      const reason = reasons.shift();
      if (reason !== undefined) throw new Error(reason);
      return { name: "docker", capability: async () => null } as unknown as Driver;
    },
  });
  const said: string[] = [];
  const log = {
    info: (_fields: object, text: string) => said.push(text),
    error: ({ err }: { err: Error }) => said.push(err.message),
  };
  const running = await new Promise<boolean>((resolve) => {
    const opening = keepOpening(driver, log as never, async () => resolve(driver.runs), { baseMs: 1, maxMs: 1 });
    opening.tried.then(() => assert.equal(driver.runs, false));
  });
  assert.equal(running, true);
  assert.deepEqual(said, ["Docker does not answer.", "Docker is too old.", "workloads can run on this machine now"]);
});
