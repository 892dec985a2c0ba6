/** The conformance suite as a user without rights; run by test/local-driver.test.ts, which has them. */
import { driverConformance } from "../src/runtime/conformance.ts";
import { localHarness } from "./local-machine.ts";

driverConformance("local (user)", () => localHarness({ grade: "user" }));
