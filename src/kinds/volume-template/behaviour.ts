import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { find } from "../place.ts";
import { type Behaviour, implement } from "../port.ts";
import { presentOne } from "../present.ts";
import { ticketOf } from "../uploads.ts";
import { type TemplateVersion, volumeTemplate } from "./kind.ts";
import { volumeTemplateVersionDelete } from "./operations.ts";
import { templateUploads } from "./uploads.ts";
import { versionsOf } from "./versions.ts";

export const volumeTemplateBehaviour: Behaviour = {
  kind: volumeTemplate,
  uploads: templateUploads,
  present(wire, resource, { deps }) {
    const versions = withAwaited(resource, deps.clock.now());
    const ready = versions.filter(({ status }) => status === "READY");
    const failed = versions.at(-1)?.status === "FAILED";
    const latest = ready.at(-1);
    wire.state = {
      status: ready.length > 0 ? "ready" : failed ? "error" : "created",
      versionCount: versions.length,
      ...(latest ? { latestVersion: latest.name } : {}),
      ...(latest?.uploadedAt ? { lastVersionUploadedAt: latest.uploadedAt } : {}),
    };
    wire.versions = versions.map(({ name, status, contentSize, source }) => ({
      name,
      status,
      ...(contentSize === undefined ? {} : { contentSize }),
      ...(source === undefined ? {} : { versionId: source }),
      templateName: resource.name,
      workspace: resource.workspace,
      region: deps.settings.region,
    }));
  },
  handlers: [
    implement(volumeTemplateVersionDelete, async (call, deps) => {
      const { resource } = await find(volumeTemplate, call, deps);
      const given = call.params.versionName ?? "";
      const updated = await deps.store.resources.update(resource.workspace, resource.uid, (current) => {
        const versions = versionsOf(current);
        if (!versions.some(({ name }) => name === given))
          throw notFound(`version '${given.slice(0, 64)}' of volumetemplate '${current.name}'`);
        if (versions.length === 1)
          throw new PlatformError(
            "bad_request",
            `'${given}' is the only version of '${current.name}'. Delete the template instead.`,
          );
        return {
          state: { ...current.state, versions: versions.filter(({ name }) => name !== given) },
          actor: call.caller.displayName,
          event: { type: "version-deleted", message: `Version ${given} deleted by ${call.caller.displayName}.` },
        };
      });
      if (!updated) throw notFound(`volumetemplate '${resource.name}'`);
      const template = await presentOne(volumeTemplateBehaviour, updated, { parents: [] }, deps);
      return { message: `Version '${given}' of '${resource.name}' is deleted.`, template };
    }),
  ],
};

/** Includes the version whose archive is still awaited; it has no content yet. */
function withAwaited(resource: Resource, nowMs: number): TemplateVersion[] {
  const versions = versionsOf(resource);
  const ticket = ticketOf(resource);
  if (!ticket || ticket.expiresAt <= nowMs || versions.some(({ name }) => name === ticket.revision)) return versions;
  return [...versions, { name: ticket.revision, status: "CREATED" }];
}
