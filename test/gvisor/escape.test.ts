/** Attempts to get out of a workload in gVisor. `test/local/escape.test.ts` has those of the other grades. */
import { test } from "node:test";
import { escapes } from "../local/escape-table.ts";
import { localDriverMissing } from "../local/machine.ts";
import { RUNSC_MISSING, testRunsc } from "./binary.ts";

const runsc = localDriverMissing ? null : testRunsc();
if (runsc === null) test("escape from gVisor", { skip: RUNSC_MISSING }, () => {});
else escapes("vm-like", runsc);
