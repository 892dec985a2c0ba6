import type { z } from "zod";
import { scopeRefusal } from "../../auth/authorize.ts";
import type { Caller } from "../../contract/caller.ts";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { findImage, IMAGE, usersOf } from "../image/images.ts";
import { imageGet } from "../image/operations.ts";
import { listableKinds } from "../listable.ts";
import { namedResource } from "../named-resource.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { referenceFind, SHOWN_MAX } from "./operations.ts";

interface Named {
  kind: string;
  name: string;
}

export const referenceHandlers: readonly Implementation[] = [
  implement(referenceFind, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const { kind, name } = call.query;
    const found =
      kind === IMAGE || kind === "images"
        ? await ofImage(workspace, name, call.caller, deps)
        : await ofResource(workspace, call, deps);
    const listable = new Set(listableKinds(call.caller).map((one) => one.name));
    const shown = (side: readonly Named[]): Named[] =>
      side
        .filter((one) => listable.has(one.kind))
        .slice(0, SHOWN_MAX)
        .map((one) => ({ kind: one.kind, name: one.name }));
    return { uses: shown(found.uses), usedBy: shown(found.usedBy) };
  }),
];

interface Sides {
  uses: readonly Named[];
  usedBy: readonly Named[];
}

type ReferenceCall = Call<z.output<NonNullable<typeof referenceFind.query>>>;

async function ofResource(workspace: string, call: ReferenceCall, deps: Platform): Promise<Sides> {
  const { store } = deps;
  const { kind, resource } = await namedResource(call, deps);
  const [uses, users] = await Promise.all([
    store.links.targetsOf(resource.uid),
    store.links.usersOf(workspace, kind.name, [resource.name]),
  ]);
  return { uses, usedBy: users.get(resource.name) ?? [] };
}

async function ofImage(workspace: string, name: string, caller: Caller, deps: Platform): Promise<Sides> {
  const refusal = scopeRefusal(imageGet, caller);
  if (refusal !== null) throw new PlatformError("forbidden", refusal);
  const slash = name.indexOf("/");
  const image = slash < 0 ? null : await findImage(workspace, name.slice(0, slash), name.slice(slash + 1), deps);
  if (!image) throw notFound(`image '${name}'`);
  return { uses: [], usedBy: await usersOf(image, workspace, deps, { limit: SHOWN_MAX }) };
}
