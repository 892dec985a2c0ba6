import type { RevisionRow } from "../database/schema.ts";

export const REVISIONS_MAX = 5;

/** One past or present configuration of a resource. */
export interface Revision {
  id: string;
  createdAt: number;
  createdBy: string;
  spec: Record<string, unknown>;
  uid: string;
  sealedSecrets: string | null;
}

export const revisionFromRow = (row: RevisionRow): Revision => ({
  id: row.revision,
  createdAt: row.created_at,
  createdBy: row.created_by,
  spec: JSON.parse(row.spec) as Record<string, unknown>,
  uid: row.uid,
  sealedSecrets: row.secrets,
});
