/**
 * The tables. JSON is kept as text on both databases and (un)packed by fromRow/toRow, times are milliseconds since
 * the epoch, and booleans are 0 or 1, so that one set of row types serves SQLite and PostgreSQL.
 */

import type { Generated } from "kysely";
import type { Right } from "../../contract/caller.ts";
import type { DeliveryCountRow, DeliveryRow } from "../deliveries/delivery.ts";
import type { ChunkRow, ExecutionRow, TaskRow } from "../executions/execution.ts";

export interface Tables {
  records: RecordRow;
  executions: ExecutionRow;
  execution_chunks: ChunkRow;
  tasks: TaskRow;
  deliveries: DeliveryRow;
  cron_triggers: CronTriggerRow;
  threads: ThreadRow;
  thread_messages: ThreadMessageRow;
  delivery_counts: DeliveryCountRow;
  resources: ResourceRow;
  resource_counts: { workspace: string; kind: string; parent: string; n: number };
  /** See resources/status-counts.ts. */
  status_counts: { workspace: string; kind: string; status: string; shard: number; n: number };
  resource_links: LinkRow;
  held_words: HeldWordRow;
  revisions: RevisionRow;
  accounts: { id: string; name: string; created_at: number };
  users: UserRow;
  account_members: { account_id: string; sub: string; role: string };
  workspaces: WorkspaceRow;
  workspace_members: { workspace: string; sub: string; role: string; source: string; created_at: number };
  service_accounts: ServiceAccountRow;
  external_identities: { issuer: string; subject: string; sub: string; created_at: number };
  api_keys: ApiKeyRow;
  invitations: InvitationRow;
  idempotency: IdempotencyRow;
  shares: ShareRow;
  share_offers: ShareOfferRow;
  signing_keys: SigningKeyRow;
  oauth_records: OauthRecordRow;
  audit_log: AuditRow;
  audit_head: { id: number; seq: number; hash: string };
  audit_base: { id: number; seq: number; hash: string; seal: string };
  sign_in_tries: { key: string; tries: number; since: number };
  nodes: NodeRow;
  blobs: { digest: string; chunks: number; written_at: number };
  /** Base64, so that a backup of either database is the same text. */
  blob_chunks: { digest: string; at: number; base64: string };
  pushed_blobs: PushedBlobRow;
  pushed_manifests: PushedManifestRow;
  certificates: CertificateRow;
  certificate_orders: { id: string; workspace: string; ordered_at: number };
  acme_accounts: { directory: string; url: string; sealed_key: string };
  leases: { name: string; holder: string; token: number; expires_at: number };
  usage_accounts: { id: Generated<number>; account_id: string };
  usage_series: UsageSeriesRow;
  usage_events: { start_ms: number; series_id: number; event_key: string; end_ms: number; quantity: number };
  /** `level` is the id of a ROLLUP_LEVELS entry, `bucket` the number of its first hour. */
  usage_rollups: { account: number; level: number; bucket: number; series_id: number; quantity: number; cost: number };
  usage_spans: UsageSpanRow;
  usage_metered: { series_id: number; node: string; until_ms: number };
  usage_meters: { node: string; covered_until: number; era: number };
  usage_retention: { id: number; events_since: number };
}

export interface ResourceRow {
  /** SQLite only: the rowid, computed from uid so that rowids follow the order of creation. Null on PostgreSQL. */
  id: number | null;
  uid: string;
  workspace: string;
  kind: string;
  /** uid of the containing resource, or "" directly below the workspace. */
  parent: string;
  name: string;
  /** Equals the name while the resource holds it. A retired record changes its slot to free the name. */
  slot: string;
  external_id: string | null;
  status: string | null;
  generation: number;
  observed_generation: number;
  version: number;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
  created_by: string;
  updated_by: string;
  metadata: string;
  spec: string;
  secrets: string | null;
  state: string;
  events: string;
  search: string;
  /** The node that has the resource; null for kinds that belong to no machine. */
  node: string | null;
  /** When the resource got its status; 0 for what an older version wrote, except failures. */
  status_at: number;
}

export interface NodeRow {
  id: string;
  name: string;
  /** Where other nodes reach this one, as host:port; null when it does not listen for them. */
  address: string | null;
  version: string;
  driver: string;
  /** A JSON array of names. */
  capabilities: string;
  memory_mb: number;
  cpus: number;
  used_mb: number;
  drained: number;
  started_at: number;
  heartbeat_at: number;
  /** The process that speaks for the node. */
  session: string;
  /** Names the data folder that the process uses, to tell a restart from a copied folder. */
  folder: string;
}

export interface LinkRow {
  /** The resource that has the link; workspace, kind and name are for messages. */
  uid: string;
  workspace: string;
  kind: string;
  name: string;
  /** "" for words that are unique on the whole platform. */
  target_workspace: string;
  target_kind: string;
  target: string;
  exclusive: number;
}

export interface RevisionRow {
  uid: string;
  revision: string;
  workspace: string;
  created_at: number;
  created_by: string;
  spec: string;
  secrets: string | null;
}

export interface UserRow {
  sub: string;
  email: string;
  given_name: string;
  family_name: string;
  password_hash: string | null;
  email_verified: number;
  created_at: number;
}

export interface WorkspaceRow {
  name: string;
  id: string;
  account_id: string;
  display_name: string;
  region: string;
  labels: string;
  group_mappings: string;
  runtime: string;
  status: string;
  status_reason: string | null;
  version: number;
  created_at: number;
  updated_at: number;
  created_by: string;
  updated_by: string;
  deleted_at: number | null;
}

export interface ServiceAccountRow {
  client_id: string;
  workspace: string;
  name: string;
  description: string;
  role: string;
  secret_hash: string;
  /** uid of the workload that this account identifies; null for an account that people made. */
  workload: string | null;
  scopes: string | null;
  created_at: number;
  updated_at: number;
  created_by: string;
  /** The right that the account was made with and ends with (contract/caller.ts); null = it does not depend on one. */
  hangs_on: string | null;
}

export interface ApiKeyRow {
  id: string;
  hash: string;
  /** The first characters of the key, shown in lists. */
  prefix: string;
  name: string;
  owner_type: string;
  owner: string;
  /** The only workspace in which a service account's key works. */
  workspace: string | null;
  scopes: string | null;
  created_at: number;
  created_by: string;
  expires_at: number | null;
  last_used_at: number | null;
  /** The right that the key was made with and ends with (contract/caller.ts); null = it does not depend on one. */
  hangs_on: string | null;
}

export interface InvitationRow {
  id: string;
  workspace: string;
  email: string;
  role: string;
  invited_by: string;
  /** The key or service account that made it; null for a person who signed in. */
  made_with: Right | null;
  created_at: number;
  expires_at: number;
}

export interface IdempotencyRow {
  scope: string;
  key: string;
  body_hash: string;
  uid: string;
  holder: string;
  claimed_until: number;
  status: number | null;
  response: string | null;
  created_at: number;
}

export interface ShareRow {
  /** uid of the shared resource. */
  uid: string;
  /** The borrowing workspace, or `account:<id>`. */
  target: string;
  /** The lending workspace. */
  workspace: string;
  created_by: string;
  created_at: number;
}

export interface ShareOfferRow extends ShareRow {
  id: string;
  expires_at: number;
}

export interface SigningKeyRow {
  id: string;
  purpose: string;
  /** JSON Web Key. */
  public_key: string;
  sealed_key: string;
  created_at: number;
}

export interface UsageSeriesRow {
  id: Generated<number>;
  account: number;
  /** 1 for the series of one resource, 0 for the sum without resource names. */
  named: number;
  workspace: string;
  resource_type: string;
  resource_name: string;
  resource_uuid: string;
  dimension: string;
  /** The key or person that caused the usage, where that is recorded; otherwise "". */
  subject: string;
  /** The series without resource names that this one is summed into. */
  unnamed_id: number | null;
}

export interface UsageSpanRow {
  series_id: number;
  node: string;
  start_ms: number;
  rate: number;
  span_key: string;
  price_numerator: number;
  price_denominator: number;
}

export interface OauthRecordRow {
  model: string;
  /** Hash of the id, because the id is the token itself. */
  id: string;
  sealed_payload: string;
  /** Hash of the id of the consent (grant) that this record belongs to. */
  grant_hash: string | null;
  uid: string | null;
  user_code: string | null;
  /** The signed-in person. */
  subject: string | null;
  created_at: number;
  expires_at: number;
  consumed_at: number | null;
}

export interface AuditRow {
  seq: number;
  at: number;
  account_id: string | null;
  workspace: string | null;
  actor: string;
  action: string;
  outcome: string;
  /** The whole line as JSON; the other columns exist for filters. */
  entry: string;
  hash: string;
}

export interface CronTriggerRow {
  uid: string;
  trigger_id: string;
  workspace: string;
  schedule: string;
  timezone: string;
  next_at: number;
}

export interface RecordRow {
  key: string;
  value: string;
  expires_at: number;
}

export interface HeldWordRow {
  pool: string;
  word: string;
  /** Two accounts may own a workspace of the same name, one after the other. */
  account_id: string;
  workspace: string;
  kind: string;
  name: string;
  uid: string;
}

export interface ThreadRow {
  agent_uid: string;
  thread_id: string;
  /** Number of the oldest kept message. */
  first_seq: number;
  next_seq: number;
  bytes: number;
  created_at: number;
  updated_at: number;
  expires_at: number;
}

export interface ThreadMessageRow {
  agent_uid: string;
  thread_id: string;
  seq: number;
  /** The message as JSON, sealed because conversations are private. */
  sealed: string;
  bytes: number;
}

export interface CertificateRow {
  name: string;
  domain_uid: string;
  source: string;
  chain: string;
  sealed_key: string;
  not_before: number;
  not_after: number;
  renew_at: number;
  failure: string;
  failures: number;
  retry_at: number;
  revoked_at: number;
}

export interface PushedBlobRow {
  /** A workspace and its creation time. */
  owner: string;
  /** `sandbox/tool`: the slot of the image's record. */
  repository: string;
  /** `sha256:…`. */
  digest: string;
  size_bytes: number;
  created_at: number;
}

export interface PushedManifestRow {
  owner: string;
  repository: string;
  digest: string;
  media_type: string;
  /** As the client sent it. */
  content: string;
  /** Digests of the blobs and manifests that it names, separated by spaces. */
  names: string;
  /** Digest of the manifest that it is about, such as the one that it signs; "" for none. */
  subject: string;
  created_at: number;
  size_bytes: number;
}
