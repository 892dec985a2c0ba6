/** When a sandbox in standby is written to disk (`lifecycle.hibernateAfter`), and where that is refused. */
import { PlatformError } from "../../contract/errors.ts";
import { parseDurationMs } from "../../lib/time/duration.ts";
import type { Observed } from "../../node/workload.ts";
import { type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { offeredGrade } from "../workload/isolation.ts";
import type { Sandbox } from "./kind.ts";

const afterMs = ({ lifecycle }: Sandbox["spec"]): number | null => {
  const { hibernateAfter } = lifecycle ?? {};
  return hibernateAfter === undefined ? null : parseDurationMs(hibernateAfter);
};

/** Time until the sleeping sandbox is written to disk; undefined when it never is, or is there already. */
export function hibernatesInMs(
  { spec, state }: Pick<Sandbox, "spec" | "state">,
  { hibernated }: Pick<Observed, "hibernated">,
  nowMs: number,
): number | undefined {
  const after = afterMs(spec);
  if (after === null || hibernated) return undefined;
  const { idleSince = 0, hibernateTriedAt = 0 } = state;
  return Math.max(0, Math.max(idleSince, hibernateTriedAt) + after - nowMs);
}

/** Refuses the wish where the sandbox would not run in gVisor. A driver that still opens refuses nothing. */
export async function requireHibernation(
  kind: string,
  { spec }: Input<Sandbox>,
  context: PrepareContext<Sandbox>,
): Promise<void> {
  if (afterMs(spec) === null) return;
  const owner = { kind, workspace: workspaceOf(context.call).name, spec };
  const grade = await offeredGrade(owner, context.deps.store, context.deps.here.driver);
  if (grade !== null && grade !== "vm-like")
    throw new PlatformError(
      "unprocessable",
      `spec.lifecycle.hibernateAfter needs isolation 'vm-like' (spec.runtime.isolation), and the sandbox would have '${grade}'.`,
    );
}
