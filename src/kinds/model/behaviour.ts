import { invalidField, PlatformError } from "../../contract/errors.ts";
import type { Behaviour } from "../port.ts";
import { servedAtOnce } from "../workload/behaviour.ts";
import { model } from "./kind.ts";

export const modelBehaviour: Behaviour = {
  kind: model,
  prepare({ metadata, spec }, context) {
    spec.enabled ??= true;
    const { call, current, deps } = context;
    if (call.role !== "admin") keepEndpoint(spec, current?.spec ?? {});
    checkFallbacks((spec.fallbacks ?? []) as string[], metadata.name);
    if (spec.enabled === false || ((spec.integrationConnections ?? []) as string[]).length > 0) return;
    const problem = deps.providers.problemOf({ name: metadata.name ?? "", spec }, null);
    if (problem === null) return;
    const message = `It cannot be called: it names no connection in spec.integrationConnections. ${problem}`;
    context.outlook = { status: "FAILED", event: { type: "failed", message } };
    call.warn(message);
  },
  outlook: servedAtOnce,
};

/** Whoever chooses where a connection's key is sent could read it there. */
function keepEndpoint(spec: Record<string, unknown>, before: Record<string, unknown>): void {
  const connections = (spec.integrationConnections ?? []) as unknown[];
  const goal = (of: Record<string, unknown>): string =>
    JSON.stringify([of.integrationConnections ?? [], endpointOf(of) ?? null]);
  if (connections.length === 0 || endpointOf(spec) === undefined || goal(spec) === goal(before)) return;
  throw new PlatformError(
    "forbidden",
    "spec.runtime.endpointName is where the key of the connection is sent: an admin has to choose it.",
  );
}

const endpointOf = ({ runtime }: Record<string, unknown>): unknown =>
  (runtime as { endpointName?: unknown } | undefined)?.endpointName;

/** Every model is asked once: a name that stands there again would never be tried. */
function checkFallbacks(names: readonly string[], own: unknown): void {
  for (const [index, name] of names.entries()) {
    if (name === own) throw invalidField(`spec.fallbacks[${index}]`, "names the model itself");
    if (names.indexOf(name) < index) throw invalidField(`spec.fallbacks[${index}]`, `names '${name}' a second time`);
  }
}
