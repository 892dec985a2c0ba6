/** The door of the model APIs: who calls, then the engine. */
import { randomUUID } from "node:crypto";
import { asGatewayError, GatewayError } from "../contract/gateway-errors.ts";
import { explainForbidden } from "../gateway/admit.ts";
import type { Answerer, GatewayDeps } from "../gateway/deps.ts";
import { type KnownCaller, modelCaller, subjectOf } from "../gateway/model-credentials.ts";
import { respondError } from "../http/platform-response.ts";
import type { ModelGateway } from "../models/model-gateway.ts";

export interface ModelHandlerDeps extends Pick<GatewayDeps, "authenticate" | "authorize" | "hasWorkspace"> {
  models: ModelGateway;
  brand: string;
}

export function createModelHandler(deps: ModelHandlerDeps): Answerer {
  const callerOf = modelCaller(deps, deps.brand);
  return async (down, route, challenge) => {
    // Never the caller's own id: tokens are metered once per id, so a repeated id would be free.
    const requestId = randomUUID();
    let caller: KnownCaller;
    try {
      caller = await callerOf(down, challenge);
      if (!(await deps.authorize(caller.principal, route)))
        await explainForbidden(new GatewayError("FORBIDDEN"), route.workspace, deps);
    } catch (error) {
      respondError(deps.models.responding, down, asGatewayError(error), { fixed: null, requestId });
      return;
    }
    await deps.models.handleModelRequest(down, {
      workspace: route.workspace,
      model: route.name,
      subPath: route.path === "/" ? "" : route.path,
      subject: subjectOf(caller.principal),
      requestId,
      recheck: caller.recheck,
    });
  };
}
