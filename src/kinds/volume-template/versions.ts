/** Versions of a template's content, oldest first, kept in the observed state of its record. */
import { invalidField } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";

export interface TemplateVersion {
  name: string;
  status: "CREATED" | "READY" | "FAILED";
  contentSize?: number;
  uploadedAt?: string;
  /** Digest of the version's archive. */
  source?: string;
}

export const versionsOf = ({ state }: Pick<Resource, "state">): TemplateVersion[] =>
  (state.versions as TemplateVersion[] | undefined) ?? [];

export const neededByTemplate = (template: Resource): string[] =>
  versionsOf(template).flatMap(({ source }) => source ?? []);

/** Resolves `name`, `name:latest` and `name:<version>` to a template and one of its ready versions. */
export async function requireTemplate(
  field: string,
  reference: string,
  workspace: string,
  { store }: Platform,
): Promise<{ template: Resource; version: TemplateVersion }> {
  const [name = "", wanted = "latest"] = reference.split(":");
  const template = await store.resources.get({ workspace, kind: "volumetemplate", parent: "" }, name);
  if (!template) throw invalidField(field, `volumetemplate '${name}' does not exist in this workspace`);
  const ready = versionsOf(template).filter(({ status }) => status === "READY");
  const version = wanted === "latest" ? ready.at(-1) : ready.find((one) => one.name === wanted);
  if (!version) throw invalidField(field, `volumetemplate '${name}' has no version '${wanted}' that is ready`);
  return { template, version };
}
