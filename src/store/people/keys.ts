/** API keys and service accounts. Only hashes are stored; a key is shown once, when it is made. */
import { hash } from "node:crypto";
import type { Right } from "../../contract/caller.ts";
import type { Role } from "../../contract/operation.ts";
import { randomSecret, uuidv7 } from "../../lib/ids.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { ApiKeyRow, ServiceAccountRow } from "../database/schema.ts";
import { requireLiveWorkspace } from "../resources/rows.ts";
import { IDENTITY_TOPIC } from "./workspaces.ts";

export type OwnerType = "user" | "service_account";
export type ApiKey = Omit<ApiKeyRow, "hash" | "scopes" | "hangs_on"> & {
  scopes: string[] | null;
  hangs_on: Right | null;
};
export type ServiceAccount = Omit<ServiceAccountRow, "secret_hash" | "scopes" | "hangs_on"> & {
  scopes: string[] | null;
  hangs_on: Right | null;
};

/** Characters of a key shown in lists. */
const PREFIX_LENGTH = 9;

/** A secret with 256 random bits cannot be guessed, so a fast hash is enough. */
export const hashSecret = (secret: string): string => hash("sha256", secret, "hex");

export interface NewApiKey {
  name: string;
  ownerType: OwnerType;
  owner: string;
  workspace: string | null;
  scopes: string[] | null;
  createdBy: string;
  expiresAt: number | null;
  /** The right that the key ends with. Default: none. */
  hangsOn?: Right | null;
  /** The secret of the first key, which the operator may choose. Default: random. */
  secret?: string;
}

export type Keys = ReturnType<typeof createKeys>;

export function createKeys({ database, clock }: { database: Database; clock: Clock }) {
  async function insertKey(tx: Transaction, draft: NewApiKey): Promise<{ key: ApiKey; secret: string }> {
    if (draft.workspace !== null) await requireLiveWorkspace(tx.queries, database.dialect, draft.workspace);
    const secret = draft.secret ?? `bk_${randomSecret()}`;
    const row: ApiKeyRow = {
      id: uuidv7(clock.now()),
      hash: hashSecret(secret),
      prefix: secret.slice(0, Math.min(PREFIX_LENGTH, Math.floor(secret.length / 3))),
      name: draft.name,
      owner_type: draft.ownerType,
      owner: draft.owner,
      workspace: draft.workspace,
      scopes: draft.scopes ? JSON.stringify(draft.scopes) : null,
      created_at: clock.now(),
      created_by: draft.createdBy,
      expires_at: draft.expiresAt,
      last_used_at: null,
      hangs_on: draft.hangsOn ?? null,
    };
    await tx.queries.insertInto("api_keys").values(row).execute();
    tx.announce({ topic: IDENTITY_TOPIC, key: row.id });
    return { key: keyFromRow(row), secret };
  }

  return {
    insertKey,
    createKey: (draft: NewApiKey) => database.write((tx) => insertKey(tx, draft)),

    async findKey(secret: string): Promise<ApiKey | null> {
      const row = await database.read
        .selectFrom("api_keys")
        .selectAll()
        .where("hash", "=", hashSecret(secret))
        .executeTakeFirst();
      return row ? keyFromRow(row) : null;
    },

    async getKey(id: string): Promise<ApiKey | null> {
      const row = await database.read.selectFrom("api_keys").selectAll().where("id", "=", id).executeTakeFirst();
      return row ? keyFromRow(row) : null;
    },

    /** Keys of all owners that end with the right that made them. */
    async hangingKeys(): Promise<ApiKey[]> {
      const rows = await database.read.selectFrom("api_keys").selectAll().where("hangs_on", "is not", null).execute();
      return rows.map(keyFromRow);
    },

    /** Service accounts of all workspaces that end with the right that made them. */
    async hangingAccounts(): Promise<ServiceAccount[]> {
      const rows = await database.read
        .selectFrom("service_accounts")
        .selectAll()
        .where("hangs_on", "is not", null)
        .execute();
      return rows.map(accountFromRow);
    },

    async listKeys(ownerType: OwnerType, owner: string): Promise<ApiKey[]> {
      const rows = await database.read
        .selectFrom("api_keys")
        .selectAll()
        .where("owner_type", "=", ownerType)
        .where("owner", "=", owner)
        .orderBy("created_at")
        .execute();
      return rows.map(keyFromRow);
    },

    /** Names of the keys that still exist, by id. */
    async keyNames(ids: readonly string[]): Promise<Map<string, string>> {
      if (ids.length === 0) return new Map();
      const rows = await database.read.selectFrom("api_keys").select(["id", "name"]).where("id", "in", ids).execute();
      return new Map(rows.map(({ id, name }) => [id, name]));
    },

    async removeKey(ownerType: OwnerType, owner: string, id: string): Promise<boolean> {
      return database.write(async (tx) => {
        const result = await tx.queries
          .deleteFrom("api_keys")
          .where("id", "=", id)
          .where("owner_type", "=", ownerType)
          .where("owner", "=", owner)
          .executeTakeFirst();
        tx.announce({ topic: IDENTITY_TOPIC, key: id });
        return Number(result.numDeletedRows) > 0;
      });
    },

    /** Writes the times of last use in batches: they are a hint for people, not worth a commit per request. */
    async noteUse(uses: ReadonlyMap<string, number>): Promise<void> {
      if (uses.size === 0) return;
      await database.write(async (tx) => {
        for (const [id, at] of uses)
          await tx.queries.updateTable("api_keys").set({ last_used_at: at }).where("id", "=", id).execute();
      });
    },

    async createServiceAccount(draft: {
      workspace: string;
      name: string;
      description: string;
      role: Role;
      createdBy: string;
      scopes?: string[];
      hangsOn?: Right | null;
    }): Promise<{ account: ServiceAccount; secret: string }> {
      const secret = randomSecret();
      const now = clock.now();
      const row: ServiceAccountRow = {
        client_id: uuidv7(now),
        workspace: draft.workspace,
        name: draft.name,
        description: draft.description,
        role: draft.role,
        secret_hash: hashSecret(secret),
        workload: null,
        scopes: draft.scopes ? JSON.stringify(draft.scopes) : null,
        created_at: now,
        updated_at: now,
        created_by: draft.createdBy,
        hangs_on: draft.hangsOn ?? null,
      };
      await database.write(async (tx) => {
        await requireLiveWorkspace(tx.queries, database.dialect, row.workspace);
        await tx.queries.insertInto("service_accounts").values(row).execute();
        tx.announce({ topic: IDENTITY_TOPIC, key: row.client_id });
      });
      return { account: accountFromRow(row), secret };
    },

    async listServiceAccounts(workspace: string): Promise<ServiceAccount[]> {
      const rows = await database.read
        .selectFrom("service_accounts")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("workload", "is", null)
        .orderBy("created_at")
        .execute();
      return rows.map(accountFromRow);
    },

    async countServiceAccounts(workspace: string): Promise<number> {
      const row = await database.read
        .selectFrom("service_accounts")
        .select(({ fn }) => fn.countAll<number>().as("n"))
        .where("workspace", "=", workspace)
        .where("workload", "is", null)
        .executeTakeFirst();
      return Number(row?.n ?? 0);
    },

    async getServiceAccount(workspace: string, clientId: string): Promise<ServiceAccount | null> {
      const row = await database.read
        .selectFrom("service_accounts")
        .selectAll()
        .where("client_id", "=", clientId)
        .where("workspace", "=", workspace)
        .executeTakeFirst();
      return row ? accountFromRow(row) : null;
    },

    /** For authentication only: the workspace is part of the result. */
    async findServiceAccountAcrossWorkspaces(clientId: string): Promise<ServiceAccount | null> {
      const row = await database.read
        .selectFrom("service_accounts")
        .selectAll()
        .where("client_id", "=", clientId)
        .executeTakeFirst();
      return row ? accountFromRow(row) : null;
    },

    async verifyServiceAccount(clientId: string, secret: string): Promise<ServiceAccount | null> {
      const row = await database.read
        .selectFrom("service_accounts")
        .selectAll()
        .where("client_id", "=", clientId)
        .where("secret_hash", "=", hashSecret(secret))
        .executeTakeFirst();
      return row ? accountFromRow(row) : null;
    },

    async updateServiceAccount(
      workspace: string,
      clientId: string,
      change: { name?: string; description?: string; role?: Role },
    ): Promise<ServiceAccount | null> {
      return database.write(async (tx) => {
        const row = await tx.queries
          .updateTable("service_accounts")
          .set({ ...change, updated_at: clock.now() })
          .where("client_id", "=", clientId)
          .where("workspace", "=", workspace)
          .returningAll()
          .executeTakeFirst();
        tx.announce({ topic: IDENTITY_TOPIC, key: clientId });
        return row ? accountFromRow(row) : null;
      });
    },

    /** Removes the account together with its keys. */
    async removeServiceAccount(workspace: string, clientId: string): Promise<boolean> {
      return database.write(async (tx) => {
        const result = await tx.queries
          .deleteFrom("service_accounts")
          .where("client_id", "=", clientId)
          .where("workspace", "=", workspace)
          .executeTakeFirst();
        if (Number(result.numDeletedRows) === 0) return false;
        await tx.queries
          .deleteFrom("api_keys")
          .where("owner_type", "=", "service_account")
          .where("owner", "=", clientId)
          .execute();
        tx.announce({ topic: IDENTITY_TOPIC, key: clientId });
        return true;
      });
    },
  };
}

const parseScopes = (text: string | null): string[] | null => (text === null ? null : (JSON.parse(text) as string[]));

const keyFromRow = ({ hash: _hash, scopes, hangs_on, ...row }: ApiKeyRow): ApiKey => ({
  ...row,
  scopes: parseScopes(scopes),
  hangs_on: hangs_on as Right | null,
});

const accountFromRow = ({ secret_hash: _hash, scopes, hangs_on, ...row }: ServiceAccountRow): ServiceAccount => ({
  ...row,
  scopes: parseScopes(scopes),
  hangs_on: hangs_on as Right | null,
});
