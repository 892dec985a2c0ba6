import { requireOwnGrants } from "../drive/grants.ts";
import { requirePlacement } from "../policy/placement.ts";
import { type Behaviour, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { keepCronTriggers } from "../workload/cron-triggers.ts";
import { requireNetwork } from "../workload/network-place.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { prepareUrls, urlClaims } from "../workload/urls.ts";
import { type Agent, agent } from "./kind.ts";

export const agentBehaviour: Behaviour<Agent> = {
  kind: agent,
  async prepare(input, context) {
    prepareWorkload(input, agent.name, context);
    input.spec.public ??= false;
    await requireNetwork(input, context);
    await requirePlacement(agent.name, input, context);
    await requireOwnGrants(agent.name, input, context);
    await prepareUrls(input, context);
  },
  ...deployed,
  claims: (input, call) => [...triggerClaims(input, workspaceOf(call).name), ...urlClaims(input)],
  onWrite: keepCronTriggers,
};
