import { notFound } from "../../contract/errors.ts";
import { isExpiredToken, previewTokenSlot } from "../../contract/preview-tokens.ts";
import { randomSecret } from "../../lib/ids.ts";
import { toIso } from "../../lib/time/clock.ts";
import { endWithin } from "../handing-on.ts";
import { checkedDateMs } from "../lifetime.ts";
import { locate } from "../place.ts";
import { type Behaviour, implement } from "../port.ts";
import { type PreviewToken, previewToken } from "./kind.ts";
import { previewTokenDelete } from "./operations.ts";

export const previewTokenBehaviour: Behaviour<PreviewToken> = {
  kind: previewToken,
  prepare({ spec }, { call: { caller }, state }) {
    if (spec.expiresAt === "") delete spec.expiresAt;
    const asked = spec.expiresAt === undefined ? null : checkedDateMs("spec.expiresAt", spec.expiresAt);
    const end = endWithin("spec.expiresAt", asked, caller);
    if (asked === null && end !== null) spec.expiresAt = toIso(end);
    spec.token = randomSecret();
    state.madeBy = {
      subject: caller.subject,
      subjectType: caller.subjectType,
      right: caller.right,
    };
  },
  slot: ({ spec }) => previewTokenSlot(spec.token ?? ""),
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
