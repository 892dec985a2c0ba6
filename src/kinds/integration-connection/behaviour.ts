import { nearestWord } from "../../lib/nearest-word.ts";
import { findIntegration, INTEGRATIONS } from "../integration/declarations.ts";
import type { Behaviour, Input, Platform } from "../port.ts";
import { type IntegrationConnection, integrationConnection } from "./kind.ts";

export const integrationConnectionBehaviour: Behaviour<IntegrationConnection> = {
  kind: integrationConnection,
  prepare(input, context) {
    const problem = problemOf(input, context.deps);
    context.outlook = { status: "DEPLOYED" };
    if (problem === null) return;
    context.outlook = { status: "FAILED", event: { type: "failed", message: problem } };
    context.call.warn(problem);
  },
};

/** Why the platform cannot use the connection itself. Code that names the connection still gets its secrets. */
function problemOf({ spec }: Input<IntegrationConnection>, { providers }: Platform): string | null {
  const { integration: name, secret: given = {} } = spec;
  const provider = providers.describe(name);
  const known = provider ?? findIntegration(name);
  if (!known) {
    if (spec.config?.baseUrl) return null;
    const near = nearestWord(
      name,
      INTEGRATIONS.map((each) => each.name),
    );
    const meant = near === null ? "" : `; did you mean '${near}'?`;
    return `There is no integration '${name}' here, and spec.config.baseUrl names no address: only code that names the connection can use it${meant || "."}`;
  }
  // A provider accepts its key under any of several names, so one of them is enough.
  const missing = known.secrets.filter((secret) => !given[secret]);
  const isLacking = provider ? provider.needsSecret && missing.length === known.secrets.length : missing.length > 0;
  const lacking = provider ? missing.slice(0, 1) : missing;
  return isLacking ? `It cannot be used: spec.secret lacks ${lacking.join(", ")}.` : null;
}
