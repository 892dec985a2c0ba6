import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { ownMachineMissing, runOnOwnMachine, testFolder } from "./own-machine.ts";

/** Node sends no raw packets. */
const pythonMissing =
  spawnSync("python3", ["--version"]).status === 0 ? false : "needs python3: install it to include it";

test(
  "a flood of half-open connections takes a bounded part of the kernel's table, and other workloads go on",
  {
    skip: ownMachineMissing || pythonMissing,
  },
  (t) => runOnOwnMachine(t, { name: "flood-child.ts", args: [testFolder(t)] }),
);
