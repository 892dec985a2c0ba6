/** The door of the model APIs: who calls, then the engine. Clients of every provider put their key somewhere else. */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { Clock } from "../../lib/clock.ts";
import type { GatewayDeps, HandledRoute, Principal } from "../deps.ts";
import { writeError } from "./answer-writer.ts";
import type { ModelGateway } from "./model-gateway.ts";

export interface ModelHandlerDeps extends Pick<GatewayDeps, "authenticate" | "authorize"> {
  models: ModelGateway;
  clock: Clock;
  brandWords: readonly string[];
  docsBase: string;
}

/** Where the official clients of the providers send what they were given as an API key. */
const KEY_HEADERS = ["x-api-key", "x-goog-api-key", "api-key"];

export function createModelHandler(
  deps: ModelHandlerDeps,
): (req: IncomingMessage, res: ServerResponse, route: HandledRoute) => void {
  const labels = Object.fromEntries(deps.brandWords.map((word) => [`x-${word}-source`, "platform"]));
  return (req, res, route) => {
    admit(deps, req, route).then(
      ({ id, type, keyId }) =>
        deps.models.handleModelRequest(req, res, {
          workspace: route.workspace,
          model: route.name,
          subPath: route.path === "/" ? "" : route.path,
          subject: keyId ? { id: keyId, type: "api_key" } : { id, type },
          requestId: randomUUID(),
        }),
      (error: unknown) => {
        req.resume();
        writeError(res, error, { nowMs: deps.clock.now(), docsBase: deps.docsBase, labels });
      },
    );
  };
}

async function admit(
  deps: ModelHandlerDeps,
  { headers }: IncomingMessage,
  { workspace, kind }: HandledRoute,
): Promise<Principal> {
  const token = tokenOf(headers, deps.brandWords);
  if (token === null) throw new GatewayError("AUTHENTICATION_REQUIRED");
  const principal = await deps.authenticate(token);
  if (!principal) throw new GatewayError("AUTHENTICATION_FAILED");
  if (!(await deps.authorize(principal, { workspace, kind }))) throw new GatewayError("FORBIDDEN");
  return principal;
}

function tokenOf(headers: IncomingHttpHeaders, brandWords: readonly string[]): string | null {
  for (const name of [...brandWords.map((word) => `x-${word}-authorization`), "authorization"]) {
    const bearer = /^bearer +(\S+)$/i.exec(String(headers[name] ?? ""))?.[1];
    if (bearer) return bearer;
  }
  const key = KEY_HEADERS.map((name) => headers[name]).find((value) => typeof value === "string" && value !== "");
  return typeof key === "string" ? key : null;
}
