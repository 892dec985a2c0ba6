/** Slots of cron triggers, from executions and events. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cronSlots, cronTriggersOf } from "../../console/lib/cron-slots.ts";

test("slots that fired and slots that were skipped are one list, newest first; other executions and events are left out", () => {
  const executions = [
    { metadata: { id: "e2", trigger: "nightly", createdAt: "2026-05-02T00:00:00Z" }, status: "failed" },
    { metadata: { id: "e1", createdAt: "2026-05-01T12:00:00Z" }, status: "succeeded" },
  ];
  const events = [
    { time: "2026-05-01T00:00:00Z", type: "skipped", message: "Trigger 'nightly' was skipped: No slot is free." },
    { time: "2026-05-01T01:00:00Z", message: "Deployed." },
  ];
  assert.deepEqual(cronSlots(executions, events), [
    { trigger: "nightly", time: "2026-05-02T00:00:00Z", execution: { id: "e2", status: "failed" }, reason: "" },
    { trigger: "nightly", time: "2026-05-01T00:00:00Z", execution: null, reason: "No slot is free." },
  ]);
  assert.deepEqual(cronSlots([], "no list"), []);
});

test("only cron triggers have a schedule, in UTC unless they say otherwise", () => {
  const triggers = [
    { id: "web", type: "http" },
    { id: "a", type: "cron", configuration: { schedule: "0 3 * * *" } },
    { id: "b", type: "cron", enabled: false, configuration: { schedule: "* * * * *", timezone: "Europe/Berlin" } },
  ];
  assert.deepEqual(cronTriggersOf(triggers), [
    { id: "a", schedule: "0 3 * * *", timezone: "UTC", isOn: true },
    { id: "b", schedule: "* * * * *", timezone: "Europe/Berlin", isOn: false },
  ]);
  assert.deepEqual(cronTriggersOf(undefined), []);
});
