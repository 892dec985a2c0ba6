/** The system calls that start a workload: in gVisor, or on the machine's own kernel. */
import type { Program } from "../calls/program.ts";
import { type LaunchPlan, launchSteps } from "../workload/launch-program.ts";
import { writeBundle } from "./bundle.ts";
import { type Vm, vmSteps } from "./vm-program.ts";

export function stepsOf(plan: LaunchPlan, vm: Vm | null): (program: Program) => void {
  if (vm === null) return (program) => launchSteps(program, plan);
  const { identity } = plan;
  if (identity.kind !== "mapped") throw new Error("gVisor runs as a mapped user");
  const whole = { ...plan, identity };
  writeBundle(whole);
  return (program) => vmSteps(program, whole, vm);
}
