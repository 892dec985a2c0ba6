import assert from "node:assert/strict";
import { test } from "node:test";
import { filePath } from "./sandbox-door.ts";

test("no path of a file leaves the sandbox", () => {
  const base = "http://host/ws/sandboxes/box";
  for (const [path, sent] of [
    ["../../user2/filesystem/a", ".%2F..%2F..%2Fuser2%2Ffilesystem%2Fa"],
    ["..", ".%2F.."],
    ["tree/a", ".%2Ftree%2Fa"],
    ["/../../../v0", "%2F..%2F..%2F..%2Fv0"],
    ["~/../a", "~%2F..%2Fa"],
  ] as const)
    assert.equal(new URL(base + filePath(path)).href, `${base}/filesystem/${sent}`);
});
