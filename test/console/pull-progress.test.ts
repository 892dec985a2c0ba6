import assert from "node:assert/strict";
import { test } from "node:test";
import { progressOf } from "../../console/pages/images/pull-progress.ts";

test("the progress of a pull is read from its last event", () => {
  const text = "Pulling docker.io/library/python:3.12: 12.0 MB of 48.0 MB, 1 of 3 layers.";
  assert.deepEqual(progressOf([{ type: "pulling", message: text }]), { text, part: 0.25 });
  assert.equal(progressOf([{ type: "pulling", message: "x: 512 B of 2.0 KB, 0 of 1 layers." }])?.part, 0.25);
  const asked = "somebody asked for python:3.12.";
  assert.deepEqual(progressOf([{ type: "pulling", message: asked }]), { text: asked, part: 0 });
  assert.equal(progressOf([{ type: "pulled", message: "Pulled it: 3.0 MB in 1.0 s." }]), null);
});
