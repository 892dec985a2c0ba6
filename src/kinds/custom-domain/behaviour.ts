import { invalidField, PlatformError } from "../../contract/errors.ts";
import { wholeAccount } from "../../store/resources/shares.ts";
import { HOST } from "../host.ts";
import { belongsToPlatform } from "../platform-hosts.ts";
import { type Behaviour, type Input, type Platform, type PrepareContext, workspaceOf } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { type CustomDomain, customDomain } from "./kind.ts";
import { edgeHost, recordsFor } from "./verification.ts";

export const customDomainBehaviour: Behaviour<CustomDomain> = {
  kind: customDomain,
  async prepare(input, context) {
    const { current, call, deps } = context;
    await settleFallback(input, context);
    if (!current) prepareDomain(input, call.workspace?.id ?? "", deps);
  },
  async borrowed({ name: workspace, accountId }, name, { store }) {
    const lent = await store.shares.resourcesFor([workspace, wholeAccount(accountId)], "customdomain", name);
    return lent.filter((domain) => domain.workspace !== workspace);
  },
  present(wire, { events }, { inList }) {
    if (!inList) wire.events = events;
  },
  deletedByCreator: true,
  async guardDelete(domain, { store }) {
    const shares = await store.shares.listOf(domain.uid);
    if (shares.length > 0)
      throw new PlatformError("conflict", `${domain.name} is shared with other workspaces. Take it back first.`);
    const user = (await store.claims.heldBelow(HOST, domain.name)).find(
      ({ workspace }) => workspace === domain.workspace,
    );
    if (user)
      throw new PlatformError("conflict", `${user.word} is in use by ${user.kind} '${user.name}'. Delete that first.`);
  },
};

/** Fills the members of a new domain that the platform decides. */
export function prepareDomain(
  { metadata, spec }: Input<CustomDomain>,
  workspaceId: string,
  deps: Pick<Platform, "settings" | "keyFor">,
) {
  const { name = "" } = metadata;
  const own = edgeHost(deps.settings);
  if (own && (name === own || name.endsWith(`.${own}`)))
    throw invalidField("metadata.name", `${own} and the names below it belong to the platform`);
  if (belongsToPlatform(name, deps.settings)) throw invalidField("metadata.name", `${name} belongs to the platform`);
  spec.domainType ??= "previews";
  spec.region = chosenRegion("spec.region", spec.region, null, deps.settings);
  Object.assign(spec, recordsFor(name, workspaceId, deps), { status: "pending" });
}

/** An empty name removes the fallback. A preview that does not exist yet causes a warning, not an error. */
async function settleFallback(
  { spec }: Input<CustomDomain>,
  { call, current, deps }: PrepareContext<CustomDomain>,
): Promise<void> {
  const { fallbackPreviewId: name } = spec;
  if (name === "") delete spec.fallbackPreviewId;
  if (name === undefined || name === "" || name === current?.spec.fallbackPreviewId) return;
  const found = await deps.store.resources.listNested(workspaceOf(call).name, "preview", 1, name);
  if (found.length === 0)
    call.warn(
      `spec.fallbackPreviewId: there is no preview '${name}' in this workspace yet; until there is, it serves nothing.`,
    );
}
