/**
 * The APIs of OpenAI and Anthropic over all models of a caller. The body names the model, as `workspace/name` or as
 * `name` in the caller's own workspace; everything behind that is the path that a request to the model's own address
 * takes.
 */
import { randomUUID } from "node:crypto";
import { asGatewayError, GatewayError } from "../../contract/gateway-errors.ts";
import { explainForbidden } from "../../gateway/admit.ts";
import type { Challenge, Facade, GatewayDeps, Principal } from "../../gateway/deps.ts";
import { modelCaller, subjectOf } from "../../gateway/model-credentials.ts";
import type { Downstream } from "../../http/downstream.ts";
import { brandWords } from "../../http/header-rules.ts";
import { respondError } from "../../http/platform-response.ts";
import type { ModelGateway } from "../../models/model-gateway.ts";
import { answerCatalogue, type Catalogue, type CatalogueStyle, idInPath } from "./model-catalogue.ts";

export interface ModelFacadeDeps extends Pick<GatewayDeps, "authenticate" | "authorize" | "hasWorkspace"> {
  models: ModelGateway;
  brand: string;
  /** The workspace that a model's name without one is looked up in; null where the credentials do not say. */
  homeOf(principal: Principal): Promise<string | null>;
  catalogue: Catalogue;
}

const NO_ADDRESS: Challenge = () => ({ headers: { "www-authenticate": "Bearer" } });

export function createModelFacade(deps: ModelFacadeDeps, style: CatalogueStyle): Facade {
  const callerOf = modelCaller(deps, deps.brand);
  const workspaceHeaders = brandWords(deps.brand).map((word) => `x-${word}-workspace`);
  const defaultOf = async (down: Downstream, principal: Principal): Promise<string | null> =>
    workspaceHeaders.map((name) => down.header(name)).find(Boolean) ?? (await deps.homeOf(principal));

  return async (down, { path }) => {
    const requestId = randomUUID();
    try {
      const { principal, recheck } = await callerOf(down, NO_ADDRESS);
      const wanted = down.method === "GET" ? idInPath(path) : null;
      if (wanted !== null) answerCatalogue(down, style, wanted, await deps.catalogue.of(principal));
      else
        await deps.models.handleNamedRequest(
          down,
          { subPath: path, subject: subjectOf(principal), requestId, recheck },
          async (named) => {
            const slash = named.indexOf("/");
            const workspace = slash < 0 ? await defaultOf(down, principal) : named.slice(0, slash);
            if (workspace === null) throw new GatewayError("BAD_REQUEST", WHICH_WORKSPACE);
            if (!(await deps.authorize(principal, { workspace, kind: "model" })))
              await explainForbidden(new GatewayError("FORBIDDEN"), workspace, deps);
            return { workspace, model: named.slice(slash + 1) };
          },
        );
    } catch (error) {
      respondError(deps.models.responding, down, asGatewayError(error), { fixed: null, requestId });
    }
    return null;
  };
}

const WHICH_WORKSPACE = "These credentials have several workspaces: name the model as `workspace/name`.";
