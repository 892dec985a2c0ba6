import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { chooseStarts, type JobCandidate } from "./fair-choice.ts";

const candidate = (
  executionId: string,
  workspace: string,
  jobUid: string,
  more: Partial<JobCandidate> = {},
): JobCandidate => ({
  executionId,
  workspace,
  jobUid,
  memoryMb: 100,
  room: 100,
  jobRoom: 100,
  ...more,
});
const machine = { slots: 4, memoryMb: 1000 };

const rows: { name: string; given: Parameters<typeof chooseStarts>; expected: string[] }[] = [
  { name: "nothing waits", given: [[], [], machine], expected: [] },
  {
    name: "of one job the older execution first",
    given: [[candidate("1", "a", "j", { room: 3 }), candidate("2", "a", "j")], [], machine],
    expected: ["1", "1", "1", "2"],
  },
  {
    name: "workspaces take turns, however long one has waited",
    given: [[candidate("1", "a", "j"), candidate("2", "b", "k")], [], machine],
    expected: ["1", "2", "1", "2"],
  },
  {
    name: "jobs of a workspace take turns",
    given: [[candidate("1", "a", "j"), candidate("2", "a", "k")], [], machine],
    expected: ["1", "2", "1", "2"],
  },
  {
    name: "who runs much already comes later",
    given: [
      [candidate("1", "a", "j"), candidate("2", "b", "k")],
      [
        { workspace: "a", jobUid: "j", memoryMb: 1 },
        { workspace: "a", jobUid: "j", memoryMb: 1 },
      ],
      machine,
    ],
    expected: ["2", "2"],
  },
  {
    name: "a job's limit holds over its executions",
    given: [[candidate("1", "a", "j", { jobRoom: 2, room: 1 }), candidate("2", "a", "j", { jobRoom: 2 })], [], machine],
    expected: ["1", "2"],
  },
  {
    name: "memory ends the choice, and nobody smaller slips past",
    given: [
      [
        candidate("1", "a", "j", { memoryMb: 600 }),
        candidate("2", "b", "k", { memoryMb: 600 }),
        candidate("3", "c", "l"),
      ],
      [],
      machine,
    ],
    expected: ["1"],
  },
  {
    name: "a task bigger than the machine runs alone",
    given: [[candidate("1", "a", "j", { memoryMb: 5000 })], [], machine],
    expected: ["1"],
  },
];
for (const { name, given, expected } of rows) test(name, () => assert.deepEqual(chooseStarts(...given), expected));

test("no limit is ever exceeded", () => {
  const waiting = fc.array(
    fc.record({
      workspace: fc.constantFrom("a", "b", "c"),
      job: fc.constantFrom("j", "k"),
      memoryMb: fc.integer({ min: 1, max: 400 }),
      room: fc.nat(5),
    }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(waiting, fc.nat(8), (given, slots) => {
      const all = given.map(({ workspace, job, memoryMb, room }, n) =>
        candidate(String(n), workspace, workspace + job, { memoryMb, room, jobRoom: 3 }),
      );
      const chosen = chooseStarts(all, [], { slots, memoryMb: 1000 });
      const of = (id: string): JobCandidate => all[Number(id)] as JobCandidate;
      assert.ok(chosen.length <= slots);
      assert.ok(chosen.reduce((sum, id) => sum + of(id).memoryMb, 0) <= 1000);
      for (const { executionId, room, jobUid } of all) {
        assert.ok(chosen.filter((id) => id === executionId).length <= room);
        assert.ok(chosen.filter((id) => of(id).jobUid === jobUid).length <= 3);
      }
    }),
  );
});
