import { hostUrl, previewUrl } from "../../contract/addresses.ts";
import { invalidField } from "../../contract/errors.ts";
import { hostLabelOf } from "../../contract/held-words.ts";
import { CLAIMS, type Link } from "../../contract/references.ts";
import type { Transaction } from "../../store/database/database.ts";
import { ofKind } from "../../store/resources/resource.ts";
import { hostClaim, requireVerifiedDomain } from "../host.ts";
import { checkedDurationMs, checkedFutureMs } from "../lifetime.ts";
import { type Behaviour, type Call, type Platform, workspaceOf } from "../port.ts";
import { sandbox } from "../sandbox/kind.ts";
import { holdWord, prefixLabel } from "./held-word.ts";
import { type Preview, preview } from "./kind.ts";

const DNS_LABEL_MAX = 63;

export const previewBehaviour: Behaviour<Preview> = {
  kind: preview,
  async prepare({ spec }, { call, current, deps }) {
    for (const key of ["prefixUrl", "customDomain", "expires", "ttl"] as const) if (spec[key] === "") delete spec[key];
    spec.public ??= false;
    if (spec.ttl !== undefined) checkedDurationMs("spec.ttl", spec.ttl);
    if (spec.expires !== undefined)
      checkedFutureMs("spec.expires", spec.expires, deps.clock.now(), current?.spec.expires);
    const workspace = workspaceOf(call);
    if (spec.customDomain !== undefined) {
      spec.customDomain = spec.customDomain.toLowerCase();
      const host = hostOf(spec.customDomain, spec.prefixUrl);
      await requireVerifiedDomain("spec.customDomain", host, workspace.name, deps);
    } else if (spec.prefixUrl && prefixLabel(spec.prefixUrl, workspace.name).length > DNS_LABEL_MAX)
      throw invalidField(
        "spec.prefixUrl",
        `is too long: with the workspace's name it must fit ${DNS_LABEL_MAX} characters`,
      );
  },
  claims({ spec: { prefixUrl, customDomain } }, call) {
    if (customDomain) return [hostClaim("spec.customDomain", hostOf(customDomain, prefixUrl))];
    if (!prefixUrl) return [];
    // A prefix is unique within its workspace; the resulting host name is chosen when the preview is written.
    const name = `${workspaceOf(call).name}/${prefixUrl}`;
    return [{ field: "spec.prefixUrl", kind: CLAIMS.previewPrefix, name, exclusive: true, to: "claim" }];
  },
  async beforeLinks(tx, links, call, deps) {
    if (call.query.force === true) await takeOver(tx, links, call, deps);
  },
  onWrite: holdWord,
  present({ metadata, spec }, resource, { deps, parents: [container] }) {
    Object.assign(metadata, { resourceName: container?.name, resourceType: container?.kind });
    spec.region = container && ofKind(sandbox, container).spec.region;
    spec.url = urlOf(spec, resource, deps);
  },
};

const hostOf = (domain: string, prefix: string | undefined): string => (prefix ? `${prefix}.${domain}` : domain);

function urlOf({ customDomain, prefixUrl }: Preview["spec"], resource: Preview, { settings }: Platform): string {
  if (customDomain) return hostUrl(settings.publicUrl, hostOf(customDomain, prefixUrl));
  return previewUrl(
    { publicUrl: settings.publicUrl, domain: settings.domain ?? undefined },
    { workspace: resource.workspace, id: hostLabelOf(resource) ?? resource.uid },
  );
}

/** Takes the host from another preview of the same workspace; that preview is then served at its generated address. */
async function takeOver(tx: Transaction, links: readonly Link[], call: Call, deps: Platform): Promise<void> {
  const { store } = deps;
  const workspace = workspaceOf(call).name;
  for (const { kind, name } of links) {
    const holder = await store.links.holderIn(tx, kind, name);
    if (!holder || holder.kind !== preview.name || holder.workspace !== workspace) continue;
    const left = await store.resources.modify(
      tx,
      workspace,
      holder.uid,
      ({ spec: { customDomain: _d, prefixUrl: _p, ...spec } }) => ({
        spec,
        actor: call.caller.displayName,
        event: { type: "host-taken", message: `${name} was taken over by ${call.caller.displayName}.` },
      }),
    );
    await store.links.replace(tx, holder, []);
    if (left) await holdWord(tx, left, deps);
  }
}
