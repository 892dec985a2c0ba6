import { invalidField, notFound } from "../../contract/errors.ts";
import { ofKind } from "../../store/resources/resource.ts";
import { type Behaviour, implement, workspaceOf } from "../port.ts";
import { idleRules } from "../workload/idle-rules.ts";
import { requireNetworkRules } from "../workload/network.ts";
import { appliesTo, type Policy, policy } from "./kind.ts";
import { policyUsages } from "./operations.ts";

/** Kinds that policies apply to, keyed by their plural. */
const USER_KINDS = {
  agents: "agent",
  applications: "application",
  functions: "function",
  jobs: "job",
  models: "model",
  sandboxes: "sandbox",
} as const;

/** The member that each policy type needs. A policy without it would restrict nothing and is refused. */
const CONTENT_OF = {
  location: "locations",
  flavor: "flavors",
  maxToken: "maxTokens",
  network: "network",
  isolation: "isolation",
} as const;

interface Gathered {
  /** How many resources name a policy: name of the policy → kind → count. */
  naming: Map<string, Record<string, number>>;
  /** How many resources the workspace has: kind → status → count. Null where no policy is for all workloads. */
  all: Map<string, Record<string, number>> | null;
}

/** Policies of these types hold for every workload of the workspace, whether a workload names them or not. */
const isForAll = ({ type }: Policy["spec"]): boolean => type === "network" || type === "isolation";

/** Whether such a policy holds for workloads of this kind. Nothing of a model runs here. */
const holdsFor = (spec: Policy["spec"], kind: string): boolean => kind !== "model" && appliesTo(spec, kind);

/** Resources of each kind that `usages` names; `usage` of the policy counts all of them. */
const USAGES_MAX = 1000;

const sumOf = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

export const policyBehaviour: Behaviour<Policy, Gathered> = {
  kind: policy,
  prepare({ spec }, { call }) {
    const member = CONTENT_OF[spec.type];
    const content = spec[member];
    if (!content || (Array.isArray(content) && content.length === 0))
      throw invalidField(`spec.${member}`, `is needed by a policy of type ${spec.type}`);
    if (!spec.network) return;
    requireNetworkRules(spec.network);
    for (const text of idleRules(spec.network)) call.warn(text);
  },
  async gather(resources, { deps: { store } }) {
    const names = resources.map(({ name }) => name);
    const workspace = resources[0]?.workspace ?? "";
    const naming = await store.links.countsOf(workspace, policy.name, names);
    const all = resources.some(({ spec }) => isForAll(spec)) ? await store.resources.statusCountsIn(workspace) : null;
    return { naming, all };
  },
  present(wire, { name, spec }, { gathered }) {
    const { naming, all } = gathered;
    const countOf = (kind: string): number =>
      all && isForAll(spec)
        ? Number(holdsFor(spec, kind)) * sumOf(all.get(kind) ?? {})
        : (naming.get(name)?.[kind] ?? 0);
    wire.usage = Object.fromEntries(Object.entries(USER_KINDS).map(([word, kind]) => [word, countOf(kind)]));
  },
  handlers: [
    implement(policyUsages, async (call, { store }) => {
      const workspace = workspaceOf(call).name;
      const name = call.params[policy.param] ?? "";
      const found = await store.resources.get({ workspace, kind: policy.name, parent: "" }, name);
      if (!found) throw notFound(`policy '${name}'`);
      const { spec } = ofKind(policy, found);
      const naming = (await store.links.usersOf(workspace, policy.name, [name])).get(name) ?? [];
      const of = async (kind: string) => {
        const users = !isForAll(spec)
          ? naming.filter((user) => user.kind === kind).slice(0, USAGES_MAX)
          : holdsFor(spec, kind)
            ? await store.resources.listNested(workspace, kind, USAGES_MAX)
            : [];
        return users.map((user) => ({ name: user.name, workspace, type: kind }));
      };
      return {
        agents: await of(USER_KINDS.agents),
        applications: await of(USER_KINDS.applications),
        functions: await of(USER_KINDS.functions),
        jobs: await of(USER_KINDS.jobs),
        models: await of(USER_KINDS.models),
        sandboxes: await of(USER_KINDS.sandboxes),
      };
    }),
  ],
};
