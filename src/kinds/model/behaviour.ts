import { isDeepStrictEqual } from "node:util";
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { MASK } from "../../contract/secret-fields.ts";
import type { Behaviour } from "../port.ts";
import { servedAtOnce } from "../workload/behaviour.ts";
import { type Model, model } from "./kind.ts";

type Webhook = NonNullable<Model["spec"]["guardrails"]>["webhook"];

export const modelBehaviour: Behaviour<Model> = {
  kind: model,
  prepare({ metadata, spec }, context) {
    spec.enabled ??= true;
    const { call, current, deps } = context;
    if (call.role !== "admin") {
      keepEndpoint(spec, current?.spec ?? {});
      keepWebhook(spec, current?.spec ?? {});
    }
    const { balance } = spec;
    checkOthers(spec.fallbacks ?? [], (index) => `spec.fallbacks[${index}]`, metadata.name);
    const members = (balance?.models ?? []).map(({ name }) => name);
    const { semantic } = spec.cache ?? {};
    checkOthers(semantic ? [semantic.model] : [], () => "spec.cache.semantic.model", metadata.name);
    checkOthers(members, (index) => `spec.balance.models[${index}].name`, metadata.name);
    if (balance?.weight === 0) return;
    if (spec.enabled === false || spec.integrationConnections?.length) return;
    const problem = deps.providers.problemOf({ name: metadata.name ?? "", spec }, null);
    if (problem === null) return;
    const message = `It cannot be called: it names no connection in spec.integrationConnections. ${problem}`;
    context.outlook = { status: "FAILED", event: { type: "failed", message } };
    call.warn(message);
  },
  outlook: servedAtOnce,
};

/** Only an admin chooses the endpoint of a model with a connection: the connection's key is sent there. */
function keepEndpoint(spec: Model["spec"], before: Model["spec"]): void {
  const { integrationConnections: connections = [] } = spec;
  const goal = (of: Model["spec"]): string => JSON.stringify([of.integrationConnections ?? [], endpointOf(of) ?? null]);
  if (connections.length === 0 || endpointOf(spec) === undefined || goal(spec) === goal(before)) return;
  throw new PlatformError(
    "forbidden",
    "spec.runtime.endpointName is where the key of the connection is sent: an admin has to choose it.",
  );
}

/**
 * Only an admin chooses the webhook, which gets what callers of the model write and read, and only an admin changes or
 * removes it, because it may refuse what a member sends.
 */
function keepWebhook(spec: Model["spec"], before: Model["spec"]): void {
  const [wanted, had] = [webhookOf(spec), webhookOf(before)];
  const isSecretKept = wanted?.secret === undefined || wanted.secret === MASK;
  if (isSecretKept && isDeepStrictEqual(withoutSecret(wanted), withoutSecret(had))) return;
  throw new PlatformError(
    "forbidden",
    "spec.guardrails.webhook decides where requests and answers are sent and which of them pass: an admin has to choose it.",
  );
}

const withoutSecret = (webhook: Webhook | undefined) => webhook && { ...webhook, secret: "" };

const webhookOf = ({ guardrails }: Model["spec"]): Webhook | undefined => guardrails?.webhook;

const endpointOf = ({ runtime }: Model["spec"]): string | undefined => runtime?.endpointName;

/** Refuses duplicates and the model itself: each model is called once, so a repeated name would never be tried. */
function checkOthers(names: readonly string[], path: (index: number) => string, own: unknown): void {
  for (const [index, name] of names.entries()) {
    if (name === own) throw invalidField(path(index), "names the model itself");
    if (names.indexOf(name) < index) throw invalidField(path(index), `names '${name}' a second time`);
  }
}
