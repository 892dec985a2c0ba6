/** Describes which files survive when a sandbox is started again under the same name. */
import type { Resource } from "../../store/resources/resource.ts";
import { mountsOf } from "../drive/mounts.ts";
import type { Attachment } from "./machine.ts";

export function keptAndLost(sandbox: Resource): string {
  const attachments = (sandbox.spec.volumes ?? []) as Attachment[];
  const volumes = attachments.filter(({ type }) => type !== "ephemeral").map(at("volume"));
  const drives = mountsOf(sandbox).map(({ driveName, mountPath }) => at("drive")({ name: driveName, mountPath }));
  const kept = [...volumes, ...drives];
  const lost = "every process, and every file that was changed elsewhere: those are again the files of the image";
  return kept.length === 0
    ? `Kept: nothing, because no volume or drive is attached. Lost: ${lost}.`
    : `Kept: ${kept.join(", ")}. Lost: ${lost}.`;
}

const at =
  (noun: string) =>
  ({ name, mountPath }: Pick<Attachment, "name" | "mountPath">): string =>
    `${noun} ${name} at ${mountPath}`;
