/** The door of the model APIs: who calls, then the engine. Clients of every provider put their key somewhere else. */
import { randomUUID } from "node:crypto";
import { asGatewayError, GatewayError } from "../contract/gateway-errors.ts";
import { explainForbidden } from "../gateway/admit.ts";
import type { Answerer, GatewayDeps, Principal } from "../gateway/deps.ts";
import type { Downstream } from "../http/downstream.ts";
import { brandWords } from "../http/header-rules.ts";
import { respondError } from "../http/platform-response.ts";
import type { ModelGateway } from "../models/model-gateway.ts";

export interface ModelHandlerDeps extends Pick<GatewayDeps, "authenticate" | "authorize" | "hasWorkspace"> {
  models: ModelGateway;
  brand: string;
}

/** Where the official clients of the providers send what they were given as an API key. */
const KEY_HEADERS = ["x-api-key", "x-goog-api-key", "api-key"];

const INVALID_TOKEN = ', error="invalid_token"';

export function createModelHandler(deps: ModelHandlerDeps): Answerer {
  const bearerHeaders = [...brandWords(deps.brand).map((word) => `x-${word}-authorization`), "authorization"];
  return async (down, route, challenge) => {
    // Never the caller's own id: tokens are metered once per id, so a repeated id would be free.
    const requestId = randomUUID();
    let principal: Principal;
    try {
      const token = tokenOf(down, bearerHeaders);
      if (token === null) throw new GatewayError("AUTHENTICATION_REQUIRED", undefined, challenge());
      const found = await deps.authenticate(token);
      if (!found) throw new GatewayError("AUTHENTICATION_FAILED", undefined, challenge(INVALID_TOKEN));
      if (!(await deps.authorize(found, route)))
        await explainForbidden(new GatewayError("FORBIDDEN"), route.workspace, deps);
      principal = found;
    } catch (error) {
      respondError(deps.models.responding, down, asGatewayError(error), { fixed: null, requestId });
      return;
    }
    const { id, type, keyId } = principal;
    await deps.models.handleModelRequest(down, {
      workspace: route.workspace,
      model: route.name,
      subPath: route.path === "/" ? "" : route.path,
      subject: keyId ? { id: keyId, type: "api_key" } : { id, type },
      requestId,
    });
  };
}

const BEARER = /^bearer +(\S+)$/i;

function tokenOf(down: Downstream, bearerHeaders: readonly string[]): string | null {
  for (const name of bearerHeaders) {
    const given = down.header(name);
    const bearer = given === undefined ? undefined : BEARER.exec(given)?.[1];
    if (bearer) return bearer;
  }
  for (const name of KEY_HEADERS) {
    const key = down.header(name);
    if (key) return key;
  }
  return null;
}
