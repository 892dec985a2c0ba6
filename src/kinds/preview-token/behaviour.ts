import { createHash } from "node:crypto";
import { notFound } from "../../contract/errors.ts";
import { randomSecret } from "../../lib/ids.ts";
import type { Resource } from "../../store/resource.ts";
import { checkedDateMs } from "../lifetime.ts";
import { locate } from "../place.ts";
import { type Behaviour, implement } from "../port.ts";
import { previewToken } from "./kind.ts";
import { previewTokenDelete } from "./operations.ts";

/** Where a token is kept within its preview: found by its value, which itself is sealed. */
export const previewTokenSlot = (token: string): string => createHash("sha256").update(token).digest("hex");

export const isExpiredToken = ({ spec }: Pick<Resource, "spec">, nowMs: number): boolean =>
  typeof spec.expiresAt === "string" && Date.parse(spec.expiresAt) <= nowMs;

export const previewTokenBehaviour: Behaviour = {
  kind: previewToken,
  prepare({ spec }) {
    if (spec.expiresAt === "") delete spec.expiresAt;
    if (spec.expiresAt !== undefined) checkedDateMs("spec.expiresAt", spec.expiresAt as string);
    spec.token = randomSecret();
  },
  slot: ({ spec }) => previewTokenSlot(spec.token as string),
  present(wire, resource, { deps, parents: [container, preview] }) {
    Object.assign(wire.metadata, {
      previewName: preview?.name,
      resourceName: container?.name,
      resourceType: container?.kind,
    });
    wire.spec.expired = isExpiredToken(resource, deps.clock.now());
  },
  handlers: [
    implement(previewTokenDelete, async (call, deps) => {
      const { scope } = await locate(previewToken, call, deps);
      const given = call.params.tokenName ?? "";
      const { resources } = deps.store;
      const byValue = await resources.get(scope, previewTokenSlot(given));
      const found = byValue
        ? [byValue]
        : (await resources.childrenOf(scope.workspace, scope.parent, previewToken.name)).filter(
            ({ name }) => name === given,
          );
      if (found.length === 0) throw notFound("previewtoken of this name or value");
      await deps.store.write(async (tx) => {
        for (const { uid } of found) await resources.remove(tx, scope.workspace, uid);
      });
      return { message: `${found.length === 1 ? "The token is" : `${found.length} tokens are`} revoked.` };
    }),
  ],
};
