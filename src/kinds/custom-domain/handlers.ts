import { invalidField, notFound, PlatformError } from "../../contract/errors.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { wholeAccount } from "../../store/resources/shares.ts";
import { application } from "../application/kind.ts";
import { belongsToPlatform } from "../platform-hosts.ts";
import { type Call, type Implementation, type Input, implement, type Platform, workspaceOf } from "../port.ts";
import { type PresentOptions, toWire } from "../present.ts";
import { customDomainBehaviour, prepareDomain } from "./behaviour.ts";
import { checkedUpload, NAMES_MAX, presentCertificate } from "./certificates.ts";
import { createDns } from "./dns.ts";
import { takeBackHosts } from "./hosts-below.ts";
import type { CustomDomain } from "./kind.ts";
import {
  applicationCustomDomainCreate,
  applicationCustomDomainList,
  customDomainCertificates,
  customDomainCertificatesRemove,
  customDomainCertificatesRevoke,
  customDomainCertificateUpload,
  customDomainShare,
  customDomainShares,
  customDomainUnshare,
  customDomainVerify,
} from "./operations.ts";
import { askedRevocation, revokeCertificates } from "./revocation.ts";
import { isVerified, mayServe } from "./usable.ts";
import { verify } from "./verification.ts";

/** The word in a request that stands for every workspace of the account. */
const WHOLE_ACCOUNT_WORD = "account";

export const customDomainHandlers: readonly Implementation[] = [
  implement(customDomainVerify, async (call, deps) => {
    const domain = await find(call, deps);
    const dns = createDns(deps.settings.dnsServers);
    return present(await verify(domain, call.caller.displayName, dns, deps), deps);
  }),

  implement(customDomainShare, async (call, deps) => {
    const domain = await find(call, deps);
    const own = workspaceOf(call);
    if (domain.spec.status !== "verified" || domain.spec.domainType !== "previews")
      throw new PlatformError("bad_request", `${domain.name}: only a verified domain for previews can be shared.`);
    const target = await borrower(call.body.targetWorkspace, own, deps);
    const added = await deps.store.write((tx) => deps.store.shares.add(tx, domain, target, call.caller.displayName));
    if (!added)
      throw new PlatformError("conflict", `${domain.name} is shared with '${call.body.targetWorkspace}' already.`);
    return present(domain, deps);
  }),

  implement(customDomainUnshare, async (call, deps) => {
    const domain = await find(call, deps);
    const named = call.params.targetWorkspace ?? "";
    const target = named === WHOLE_ACCOUNT_WORD ? wholeAccount(workspaceOf(call).accountId) : named;
    if (!(await deps.store.shares.remove(domain.uid, target))) throw notFound(`A share with '${named}'`);
    await takeBackHosts(domain, deps);
    return present(domain, deps);
  }),

  implement(customDomainShares, async (call, deps) => {
    const domain = await find(call, deps);
    const shares = await deps.store.shares.listOf(domain.uid);
    return Promise.all(
      shares.map(async ({ target }) => {
        if (target.startsWith(`${WHOLE_ACCOUNT_WORD}:`)) return { workspace: WHOLE_ACCOUNT_WORD, status: "active" };
        const workspace = await deps.store.workspaces.get(target);
        return {
          workspace: target,
          status: "active",
          ...(workspace ? { workspaceDisplayName: workspace.displayName } : {}),
        };
      }),
    );
  }),

  implement(applicationCustomDomainCreate, async (call, deps) => {
    const { name: workspace, id } = workspaceOf(call);
    const { name: application } = await findApplication(call, deps);
    const { metadata, spec } = call.body as Input<CustomDomain>;
    const input = { metadata, spec: { ...spec, domainType: "applications" as const } };
    prepareDomain(input, id, deps);
    return present(await create(input, application, workspace, call, deps), deps);
  }),

  implement(applicationCustomDomainList, async (call, deps) => {
    const { workspace, name } = await findApplication(call, deps);
    const users = await deps.store.links.usersOf(workspace, application.name, [name]);
    const found = await Promise.all(
      (users.get(name) ?? [])
        .filter(({ kind }) => kind === "customdomain")
        .map(({ uid }) => deps.store.resources.getByUid(workspace, uid)),
    );
    return Promise.all(found.filter((domain) => domain !== null).map((domain) => present(domain, deps)));
  }),

  implement(customDomainCertificates, async (call, deps) => certificatesOf(await find(call, deps), deps)),

  implement(customDomainCertificateUpload, async (call, deps) => {
    const domain = await find(call, deps);
    if (!isVerified(domain))
      throw new PlatformError("bad_request", `${domain.name} is not verified: only a verified domain serves.`);
    const { names, ...issued } = checkedUpload(call.body, domain.name, deps.clock.now());
    const uploaded = await uploadedNames(domain, deps);
    if (new Set([...uploaded, ...names]).size > NAMES_MAX)
      throw invalidField("certificate", `a domain has certificates for at most ${NAMES_MAX} names`);
    for (const name of names) {
      if (belongsToPlatform(name, deps.settings))
        throw invalidField("certificate", `is for ${name}, which belongs to the platform`);
      if (!(await mayServe(name.replace(/^\*/, "any"), domain.workspace, deps)))
        throw invalidField("certificate", `is for ${name}, which belongs to another workspace`);
    }
    await deps.store.certificates.put(names, { domainUid: domain.uid, source: "upload", renewAt: 0, ...issued });
    return certificatesOf(domain, deps);
  }),

  implement(customDomainCertificatesRemove, async (call, deps) => {
    const domain = await find(call, deps);
    const uploaded = await uploadedNames(domain, deps);
    if (uploaded.length === 0) throw notFound("An uploaded certificate");
    await deps.store.certificates.remove(uploaded);
    return certificatesOf(domain, deps);
  }),

  implement(customDomainCertificatesRevoke, async (call, deps) => {
    const domain = await find(call, deps);
    await revokeCertificates(domain, askedRevocation(call), deps);
    return certificatesOf(domain, deps);
  }),
];

const certificatesOf = async ({ uid }: Resource, { store }: Platform) =>
  (await store.certificates.list(uid)).map(presentCertificate);

const uploadedNames = async ({ uid }: Resource, { store }: Platform): Promise<string[]> =>
  (await store.certificates.list(uid)).filter(({ source }) => source === "upload").map(({ name }) => name);

async function findApplication(
  call: Pick<Call, "workspace" | "operation" | "params">,
  { store }: Platform,
): Promise<Resource> {
  const name = call.params.applicationName ?? "";
  const scope = { workspace: workspaceOf(call).name, kind: application.name, parent: "" };
  const found = await store.resources.get(scope, name);
  if (!found || found.retired || found.deletedAt !== null) throw notFound(`application '${name}'`);
  return found;
}

async function create(
  { metadata: { name = "", displayName, labels }, spec }: Input,
  application: string,
  workspace: string,
  { caller, uid }: Pick<Call, "caller" | "uid">,
  { store }: Platform,
): Promise<Resource> {
  const made = uid();
  const draft = {
    ...{ workspace, kind: "customdomain", parent: "", uid: made, name },
    metadata: { ...(displayName === undefined ? {} : { displayName }), ...(labels === undefined ? {} : { labels }) },
    spec: { ...spec, application },
    secrets: {},
    state: {},
    status: null,
    events: [{ type: "created", message: `Created for application '${application}' by ${caller.displayName}.` }],
    revision: false,
    actor: caller.displayName,
    settled: true,
  };
  return store.write(async (tx) => {
    const { outcome, resource } = await store.resources.insert(tx, draft);
    if (outcome === "exists" && resource.uid !== made)
      throw new PlatformError("already_exists", `customdomain '${name}' exists already. Choose another, or delete it.`);
    const link = { field: "spec.application", kind: "application", name: application, exclusive: false } as const;
    if (outcome !== "exists") await store.links.replace(tx, resource, [{ ...link, to: "resource" }]);
    return resource;
  });
}

/** Finds a domain that this workspace owns. A borrowed domain cannot be changed here and is answered with 404. */
async function find(call: Pick<Call, "workspace" | "operation" | "params">, { store }: Platform): Promise<Resource> {
  const name = call.params.domainName ?? "";
  const scope = { workspace: workspaceOf(call).name, kind: "customdomain", parent: "" };
  const domain = await store.resources.get(scope, name);
  if (!domain || domain.retired) throw notFound(`customdomain '${name}'`);
  return domain;
}

async function borrower(named: string, own: Workspace, { store }: Platform): Promise<string> {
  if (named === WHOLE_ACCOUNT_WORD) return wholeAccount(own.accountId);
  if (named === own.name)
    throw new PlatformError("bad_request", "targetWorkspace: this is the domain's own workspace.");
  const workspace = await store.workspaces.get(named);
  if (workspace?.accountId !== own.accountId) throw notFound(`Workspace '${named}' of this account`);
  return workspace.name;
}

const present = (domain: Resource, deps: Platform) =>
  toWire(customDomainBehaviour, domain, { parents: [] } satisfies PresentOptions, deps);
