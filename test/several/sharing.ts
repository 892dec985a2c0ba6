/** Work that the servers share out among them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cluster } from "./cluster.ts";
import { until } from "./use.ts";

export function sharing(get: () => Cluster<"a" | "b">): void {
  test("tasks of a job run once each, whichever server starts it", async () => {
    const { a, b } = get().members;
    const image = "service/base-image:latest";
    const runtime = { image, memory: 128, command: ["sh", "-c", "echo task $TASK_INDEX"] };
    const made = await a.call("POST", "/jobs", { body: { metadata: { name: "many" }, spec: { runtime } } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const ids = await Promise.all(
      [a, b].map(async (member) => {
        const body = { tasks: Array.from({ length: 6 }, () => ({})) };
        const started = await member.call("POST", "/jobs/many/executions", { body });
        assert.equal(started.status, 200, JSON.stringify(started.body));
        return String(started.body.executionId);
      }),
    );
    for (const [index, id] of ids.entries()) {
      const member = index === 0 ? b : a;
      const execution = await until(
        async () => (await member.call("GET", `/jobs/many/executions/${id}?inlineTasks=true`)).body,
        ({ metadata }) => Boolean(metadata.completedAt),
      );
      assert.deepEqual([execution.status, execution.stats.success], ["succeeded", 6], JSON.stringify(execution));
    }
  });
}
