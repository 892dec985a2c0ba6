import { hubImage, hubServerFor, hubServerOf } from "../hub/servers.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import { type Behaviour, type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { keepCronTriggers } from "../workload/cron-triggers.ts";
import { codeOf, stateOf } from "../workload/deploy-state.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { functionKind } from "./kind.ts";

export const functionBehaviour: Behaviour = {
  kind: functionKind,
  async prepare(input, context) {
    prepareWorkload(input, functionKind.name, context);
    input.spec.public ??= false;
    await chooseServer(input, context);
  },
  ...deployed,
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
  onWrite: keepCronTriggers,
};

/** A function that brings neither code nor image is the server of the service that it is connected to. */
async function chooseServer({ spec }: Input, { call, current, deps }: PrepareContext): Promise<void> {
  const runtime = spec.runtime as { image?: string };
  if (call.query.upload === true) {
    if (hubServerOf(runtime.image, deps.settings)) delete runtime.image;
    return;
  }
  const hasCode = current !== null && codeOf(stateOf(current), String(current.generation)) !== null;
  if (runtime.image || hasCode) return;
  for (const name of (spec.integrationConnections ?? []) as string[]) {
    const place = { workspace: workspaceOf(call).name, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    const server = connection && hubServerFor(String(connection.spec.integration));
    if (!server) continue;
    runtime.image = hubImage(server, deps.settings);
    return;
  }
}
