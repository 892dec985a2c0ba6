import { invalidField, PlatformError } from "../../contract/errors.ts";
import { ALL_PERCENT, choiceOf } from "../../contract/revision-share.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { requireOwnGrants } from "../drive/grants.ts";
import { type HubServer, hubImage, hubServerFor, hubServerOf, isServed, serverOf } from "../hub/servers.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import { requirePlacement } from "../policy/placement.ts";
import { type Behaviour, type Input, type Platform, type PrepareContext, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { connectionNames, requireUntouched } from "../workload/connection-rules.ts";
import { keepCronTriggers } from "../workload/cron-triggers.ts";
import { codeOf } from "../workload/deploy-state.ts";
import { requireNetwork } from "../workload/network-place.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { prepareUrls, urlClaims } from "../workload/urls.ts";
import { type FunctionResource, functionKind } from "./kind.ts";
import { checkServers } from "./servers.ts";
import { keepToolRules } from "./tool-rights.ts";

export const functionBehaviour: Behaviour<FunctionResource> = {
  kind: functionKind,
  async prepare(input, context) {
    prepareWorkload(input, functionKind.name, context);
    input.spec.public ??= false;
    keepToolRules(input, context);
    await requireNetwork(input, context);
    await requirePlacement(functionKind.name, input, context);
    await requireOwnGrants(functionKind.name, input, context);
    await prepareUrls(input, context);
    await checkServers(input, context);
    await chooseServer(input, context);
    await checkServer(input, context);
    await refuseShareOfServed(input, context);
  },
  ...deployed,
  claims: (input, call) => [...triggerClaims(input, workspaceOf(call).name), ...urlClaims(input)],
  onWrite: keepCronTriggers,
};

async function checkServer(
  { spec }: Input<FunctionResource>,
  { call, deps }: PrepareContext<FunctionResource>,
): Promise<void> {
  const server = serverOf({ kind: functionKind.name, spec }, deps.settings);
  const connections = connectionNames(spec);
  // The secrets of a connection are set in the code's environment, so only an admin may deploy such code.
  if (!server && connections.length > 0 && call.role !== "admin")
    throw new PlatformError("forbidden", "Code that names connections gets their secrets: an admin has to deploy it.");
  requireUntouched(spec, deps.settings);
  if (server) await requireItsConnections(server, connections, workspaceOf(call).name, deps);
  // Without a volume, the files that such a server writes would be lost with the copy.
  if (!server || server.runs === "platform" || server.runs.inVolume === undefined) return;
  if (!spec.volumes?.length)
    throw invalidField("spec.volumes", `the ${server.displayName} server works on a volume: name one`);
}

/** A hub server may only use connections to its own service; it has no use for other secrets. */
async function requireItsConnections(
  { displayName, integration }: HubServer,
  names: readonly string[],
  workspace: string,
  { store }: Platform,
): Promise<void> {
  for (const [index, name] of names.entries()) {
    const connection = await store.resources.get({ workspace, kind: integrationConnection.name, parent: "" }, name);
    // A connection that does not exist is refused when the function is written.
    if (!connection || connection.spec.integration === integration) continue;
    throw invalidField(
      `spec.integrationConnections[${index}]`,
      integration === undefined
        ? `the ${displayName} server uses no connection`
        : `the ${displayName} server is for ${integration}, and '${name}' is to ${connection.spec.integration}`,
    );
  }
}

/** The platform answers from the newest revision, so that no other can answer. A choice that was there before stays. */
async function refuseShareOfServed(
  { spec }: Input<FunctionResource>,
  { current, deps }: PrepareContext<FunctionResource>,
): Promise<void> {
  const { settings, store } = deps;
  if (!isServed({ kind: functionKind.name, spec }, settings)) return;
  const { active, canary, canaryPercent = 0, traffic = ALL_PERCENT } = choiceOf({ spec });
  // A new function has one revision: what it names is left out, with a warning.
  const [newest] = active && current ? await store.resources.revisionsOf(current.workspace, current.uid) : [];
  const acts = {
    canary: canary && canaryPercent > 0,
    traffic: traffic > 0 && traffic < ALL_PERCENT,
    active: newest && active !== newest.id,
  };
  const member = Object.entries(acts).find(([, isChosen]) => isChosen)?.[0];
  const had = current && isServed(current, settings) ? choiceOf(current) : {};
  if (member === undefined || canonicalJson([choiceOf({ spec })]) === canonicalJson([had])) return;
  throw invalidField(
    `spec.revision.${member}`,
    "the platform answers for this server itself, from its newest revision: no other revision can answer or take a share",
  );
}

/** A function without code and without an image runs the hub server of the service that it is connected to. */
async function chooseServer(
  { spec }: Input<FunctionResource>,
  { call, current, deps }: PrepareContext<FunctionResource>,
): Promise<void> {
  const { runtime = {} } = spec;
  spec.runtime = runtime;
  if (call.query.upload === true) {
    if (hubServerOf(runtime.image, deps.settings)) delete runtime.image;
    return;
  }
  const hasCode = current !== null && codeOf(current.state, String(current.generation)) !== null;
  if (runtime.image || hasCode) return;
  for (const name of spec.integrationConnections ?? []) {
    const place = { workspace: workspaceOf(call).name, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    const server = connection && hubServerFor(String(connection.spec.integration));
    if (!server) continue;
    runtime.image = hubImage(server, deps.settings);
    return;
  }
}
