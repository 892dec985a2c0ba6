/**
 * The announcement that a resource changed. Its key is `kind/uid`; `about` is what somebody who watches needs to know
 * without reading the resource.
 */
import { type Change, RESOURCE_TOPIC } from "../database/database.ts";
import type { ResourceRow } from "../database/schema.ts";

/** A notification of PostgreSQL holds 8,000 bytes; a longer name is left out. */
const NAME_LENGTH_MAX = 2000;

export interface ResourceChange {
  kind: string;
  uid: string;
  /** Null when the resource is gone, or its name is free again. */
  version: number | null;
  workspace: string;
  /** uid of the containing resource, or "". */
  parent: string;
  name: string;
}

type Changed = Pick<ResourceRow, "kind" | "uid" | "workspace" | "parent" | "name" | "version" | "slot">;

export function changeOf(row: Changed, isGone = false): Change {
  const { kind, uid, workspace, parent } = row;
  const version = isGone || row.slot.startsWith("~") ? "" : row.version;
  const name = encodeURIComponent(row.name);
  const about = [version, workspace, parent, name.length > NAME_LENGTH_MAX ? "" : name].join("/");
  return { topic: RESOURCE_TOPIC, key: `${kind}/${uid}`, about };
}

/** Returns null for a change that tells nothing about itself. */
export function readChange({ key, about }: Change): ResourceChange | null {
  if (about === undefined) return null;
  const [kind = "", uid = ""] = key.split("/");
  const [version = "", workspace = "", parent = "", name = ""] = about.split("/");
  return {
    ...{ kind, uid, workspace, parent },
    version: version === "" ? null : Number(version),
    name: decodeURIComponent(name),
  };
}
