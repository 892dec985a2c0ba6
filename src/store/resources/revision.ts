import type { RevisionRow } from "../database/schema.ts";
import type { Json } from "./resource.ts";

export const REVISIONS_MAX = 5;

/** One past or present configuration of a resource. */
export interface Revision<Spec extends Json = Json> {
  id: string;
  createdAt: number;
  createdBy: string;
  spec: Spec;
  uid: string;
  sealedSecrets: string | null;
}

export const revisionFromRow = (row: RevisionRow): Revision => ({
  id: row.revision,
  createdAt: row.created_at,
  createdBy: row.created_by,
  spec: JSON.parse(row.spec) as Json,
  uid: row.uid,
  sealedSecrets: row.secrets,
});
