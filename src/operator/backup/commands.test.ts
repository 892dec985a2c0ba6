import assert from "node:assert/strict";
import { test } from "node:test";
import type { Invocation } from "../../cli/command.ts";
import { backupCommands } from "./commands.ts";

const backup = async (target: string, options = {}): Promise<unknown> =>
  backupCommands[0]?.run?.({ args: [target], options } as unknown as Invocation);

test("a bare word is no file to write: it may be a mistyped command", async () => {
  await assert.rejects(backup("lst"), {
    name: "UsageError",
    message: "There is no `berth backup lst`.",
    next: "did you mean `berth backup list`? For a file of that name write ./lst",
  });
  await assert.rejects(backup("verfy", { files: true }), {
    next: "did you mean `berth backup verify`? For a folder of that name write ./verfy",
  });
  await assert.rejects(backup("everything"), { next: "for a file of that name write ./everything" });
});
