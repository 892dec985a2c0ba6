import assert from "node:assert/strict";
import { test } from "node:test";
import { byRelease } from "./releases.ts";

const note = (title: string, date: string) => ({ title, content: `About ${title}.\nMore.`, date });

test("notes are told by release, newest first; those of no release come before", () => {
  const notes = [
    note("New", "2026-03-02"),
    note("B", "2026-01-01"),
    note("A", "2026-01-02"),
    note("Old", "2025-01-01"),
  ];
  const releases = [
    { version: "2.0.0", date: "2026-02-01", notes: ["A", "B"] },
    { version: "1.0.0", date: "2025-02-01", notes: ["Old", "Removed"] },
  ];
  assert.deepEqual(
    byRelease(notes, releases).map(({ title, date }) => [title, date]),
    [
      ["Since 2.0.0", "2026-03-02"],
      ["2.0.0", "2026-02-01"],
      ["1.0.0", "2025-02-01"],
    ],
  );
  assert.equal(byRelease(notes, releases)[1]?.content, "- **A.** About A.\n  More.\n- **B.** About B.\n  More.");
  assert.deepEqual(
    byRelease(notes.slice(1), releases).map(({ title }) => title),
    ["2.0.0", "1.0.0"],
    "nothing is new",
  );
  assert.deepEqual(
    byRelease(notes, []).map(({ title }) => title),
    ["Before the first release"],
  );
});
