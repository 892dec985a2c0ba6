/**
 * Every place in the database that holds a sealed value. A rotation reseals these and nothing else: a column missing
 * here cannot be opened after a rotation. test/rotation/sealed-columns.test.ts compares the list with the code.
 */
import type { Tables } from "../database/schema.ts";
import { DERIVATION_ROOT } from "./key-records.ts";

type Cell = string | number;
export type SealedRow = Readonly<Record<string, Cell>>;

export interface SealedColumn {
  table: keyof Tables;
  column: string;
  /** For people: what the values are. */
  holds: string;
  /** Columns of the primary key, which define the order of resealing. */
  key: readonly string[];
  /** The context that the value is bound to; see SealedBox. */
  context(row: SealedRow): string;
  /** In a table of many uses, the key prefix of rows with a sealed value. */
  keyPrefix?: string;
  /** The value is a copy that can be made again, so it is removed when no key opens it. */
  isCopy?: boolean;
}

export const CONNECTION_TOKENS = "connection-token/";
export const WORKSPACE_AUTHORITIES = "workspace-authority/";

const text = (cell: Cell | undefined): string => String(cell);

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  {
    table: "records",
    keyPrefix: DERIVATION_ROOT,
    column: "value",
    holds: "the root of derived keys",
    key: ["key"],
    context: ({ key }) => text(key),
  },
  {
    table: "records",
    keyPrefix: CONNECTION_TOKENS,
    column: "value",
    holds: "tokens of connections",
    key: ["key"],
    context: ({ key }) => text(key),
    isCopy: true,
  },
  {
    table: "records",
    keyPrefix: WORKSPACE_AUTHORITIES,
    column: "value",
    holds: "certificate authorities of workspaces",
    key: ["key"],
    context: ({ key }) => text(key),
  },
  {
    table: "signing_keys",
    column: "sealed_key",
    holds: "keys that sign tokens",
    key: ["id"],
    context: ({ id }) => text(id),
  },
  {
    table: "resources",
    column: "secrets",
    holds: "secrets of resources",
    key: ["uid"],
    context: ({ uid }) => text(uid),
  },
  {
    table: "revisions",
    column: "secrets",
    holds: "secrets of revisions",
    key: ["uid", "revision"],
    context: ({ uid }) => text(uid),
  },
  {
    table: "executions",
    column: "env_override",
    holds: "variables of executions",
    key: ["id"],
    context: ({ id }) => text(id),
  },
  { table: "deliveries", column: "sealed", holds: "callbacks that wait", key: ["id"], context: ({ id }) => text(id) },
  {
    table: "oauth_records",
    column: "sealed_payload",
    holds: "sign-ins and their tokens",
    key: ["model", "id"],
    context: ({ model, id }) => `${model}\0${id}`,
  },
  {
    table: "idempotency",
    column: "response",
    holds: "answers kept for repeated requests",
    key: ["scope", "key"],
    context: ({ scope, key }) => `${scope}\0${key}`,
  },
  {
    table: "thread_messages",
    column: "sealed",
    holds: "messages of threads",
    key: ["agent_uid", "thread_id", "seq"],
    context: ({ agent_uid, thread_id }) => `${agent_uid}\0${thread_id}`,
  },
  {
    table: "certificates",
    column: "sealed_key",
    holds: "keys of certificates",
    key: ["name"],
    context: ({ name }) => text(name),
  },
  {
    table: "acme_accounts",
    column: "sealed_key",
    holds: "keys of accounts at certificate authorities",
    key: ["directory"],
    context: ({ directory }) => `account ${text(directory)}`,
  },
];

/** The name of a sealed column in records, progress and constraints. */
export const nameOf = ({ table, column, keyPrefix }: SealedColumn): string =>
  [table, column, ...(keyPrefix ? [keyPrefix.replace(/\W/g, "")] : [])].join(".");
