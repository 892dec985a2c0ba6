/** Describes which files survive when a sandbox is started again under the same name. */
import type { Observed } from "../../node/workload.ts";
import { mountsOf } from "../drive/mounts.ts";
import type { Sandbox } from "./kind.ts";
import type { Attachment } from "./machine.ts";

export function keptAndLost(sandbox: Sandbox): string {
  const { volumes: attached = [] } = sandbox.spec;
  const volumes = attached.filter(({ type }) => type !== "ephemeral").map(at("volume"));
  const drives = mountsOf(sandbox).map(({ driveName, mountPath }) => at("drive")({ name: driveName, mountPath }));
  const kept = [...volumes, ...drives];
  const lost = "every process, and every file that was changed elsewhere: those are again the files of the image";
  return kept.length === 0
    ? `Kept: nothing, because no volume or drive is attached. Lost: ${lost}.`
    : `Kept: ${kept.join(", ")}. Lost: ${lost}.`;
}

/** For a sandbox that starts again on its own files. */
export function restartedAfter(ended: Pick<Observed, "endedBy" | "oom" | "exitCode" | "exitSignal">): string {
  return `Restarted ${causeOf(ended)}, files kept. Lost: every process.`;
}

function causeOf({ endedBy, oom, exitCode, exitSignal }: Parameters<typeof restartedAfter>[0]): string {
  if (endedBy) return ENDED_BY[endedBy];
  if (oom) return "because it ran out of memory";
  if (exitCode !== undefined) return `because its first process had ended with exit code ${exitCode}`;
  return `because its first process had been killed${exitSignal ? ` (${exitSignal})` : ""}`;
}

const ENDED_BY: Record<NonNullable<Observed["endedBy"]>, string> = {
  machine: "after the machine's restart",
  platform: "after the platform had ended it (`berth down`, or switched off)",
};

export const OTHER_BASE =
  "The machine's own programs, on which the base image stands, have changed meanwhile: files that the sandbox wrote are as they were, all others are the machine's of today.";

const at =
  (noun: string) =>
  ({ name, mountPath }: Pick<Attachment, "name" | "mountPath">): string =>
    `${noun} ${name} at ${mountPath}`;
