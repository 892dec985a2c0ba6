/** Versions of a template's content, oldest first, kept in the observed state of its record. */
import { invalidField } from "../../contract/errors.ts";
import { ofKind } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import { type TemplateVersion, type VolumeTemplate, volumeTemplate } from "./kind.ts";

export const versionsOf = ({ state }: Pick<VolumeTemplate, "state">): TemplateVersion[] => state.versions ?? [];

export const neededByTemplate = (template: VolumeTemplate): string[] =>
  versionsOf(template).flatMap(({ source }) => source ?? []);

/** Resolves `name`, `name:latest` and `name:<version>` to a template and one of its ready versions. */
export async function requireTemplate(
  field: string,
  reference: string,
  workspace: string,
  { store }: Platform,
): Promise<{ template: VolumeTemplate; version: TemplateVersion }> {
  const [name = "", wanted = "latest"] = reference.split(":");
  const found = await store.resources.get({ workspace, kind: volumeTemplate.name, parent: "" }, name);
  if (!found) throw invalidField(field, `volumetemplate '${name}' does not exist in this workspace`);
  const template = ofKind(volumeTemplate, found);
  const ready = versionsOf(template).filter(({ status }) => status === "READY");
  const version = wanted === "latest" ? ready.at(-1) : ready.find((one) => one.name === wanted);
  if (!version) throw invalidField(field, `volumetemplate '${name}' has no version '${wanted}' that is ready`);
  return { template, version };
}
