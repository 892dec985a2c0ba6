/**
 * State of the authorization server: codes, refresh tokens, sign-in sessions, grants. It is kept in the database so
 * that any server can serve any step. A reader of the database learns no token: ids, which are the tokens themselves,
 * are stored as hashes and payloads are sealed.
 */
import { createHash } from "node:crypto";
import type { Right } from "../../contract/caller.ts";
import type { SealedBox } from "../../lib/sealed-box.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";
import type { OauthRecordRow } from "../database/schema.ts";
import { IDENTITY_TOPIC } from "./workspaces.ts";

export type OauthPayload = Record<string, unknown>;

export interface Session {
  id: string;
  /** The OAuth client; null for a browser session. */
  client: string | null;
  createdAt: number;
  expiresAt: number;
}

const SESSION_MODELS = ["Session", "Grant"];
/** Most sessions listed, newest first. */
const SESSIONS_MAX = 500;

/** The part of a consent that credentials depend on. */
export interface Consent {
  client: string;
  endsAt: number;
  /** The right that the consent itself depends on. */
  hangsOn: Right | null;
}

export type OauthRecords = ReturnType<typeof createOauthRecords>;

export function createOauthRecords({ database, clock, box }: { database: Database; clock: Clock; box: SealedBox }) {
  const open = (row: OauthRecordRow, id: string | null): OauthPayload => ({
    ...(JSON.parse(box.open(row.sealed_payload, `${row.model}\0${row.id}`)) as OauthPayload),
    ...(id === null ? {} : { jti: id }),
    ...(row.consumed_at === null ? {} : { consumed: Math.floor(row.consumed_at / SECOND_MS) }),
  });

  const live = (model: string) =>
    database.read
      .selectFrom("oauth_records")
      .selectAll()
      .where("model", "=", model)
      .where("expires_at", ">", clock.now());

  return {
    async put(model: string, id: string, payload: OauthPayload, expiresInSeconds: number): Promise<void> {
      // Sessions are looked up by a uid that is no secret, so the payload must keep the session's own id.
      const { jti: _jti, ...rest } = payload;
      const kept = model === "Session" || payload.userCode !== undefined ? payload : rest;
      const now = clock.now();
      const row: OauthRecordRow = {
        model,
        id: hash(id),
        sealed_payload: box.seal(JSON.stringify(kept), `${model}\0${hash(id)}`),
        grant_hash: typeof payload.grantId === "string" ? hash(payload.grantId) : null,
        uid: textOf(payload.uid),
        user_code: textOf(payload.userCode),
        subject: textOf(payload.accountId),
        created_at: now,
        expires_at: now + expiresInSeconds * SECOND_MS,
        consumed_at: null,
      };
      const { created_at: _created, consumed_at: _consumed, ...changed } = row;
      await database.write(({ queries }) =>
        queries
          .insertInto("oauth_records")
          .values(row)
          .onConflict((conflict) => conflict.columns(["model", "id"]).doUpdateSet(changed))
          .execute(),
      );
    },

    async find(model: string, id: string): Promise<OauthPayload | undefined> {
      const row = await live(model).where("id", "=", hash(id)).executeTakeFirst();
      return row && open(row, id);
    },

    /** Finds a consent by the hash of its id, which is also its id in the list of sessions. */
    async consent(grantHash: string): Promise<Consent | null> {
      const row = await live("Grant").where("id", "=", grantHash).executeTakeFirst();
      if (!row) return null;
      const { clientId, hangsOn } = open(row, null);
      return { client: textOf(clientId) ?? "", endsAt: row.expires_at, hangsOn: textOf(hangsOn) as Right | null };
    },

    /** When the registration of a self-registered client expires; 0 when there is none. */
    async clientEnd(clientId: string): Promise<number> {
      return (await live("Client").where("id", "=", hash(clientId)).executeTakeFirst())?.expires_at ?? 0;
    },

    async count(model: string): Promise<number> {
      const row = await database.read
        .selectFrom("oauth_records")
        .select(({ fn }) => fn.countAll<number>().as("n"))
        .where("model", "=", model)
        .executeTakeFirst();
      return Number(row?.n ?? 0);
    },

    async findByUid(model: string, uid: string): Promise<OauthPayload | undefined> {
      const row = await live(model).where("uid", "=", uid).executeTakeFirst();
      return row && open(row, null);
    },

    async findByUserCode(model: string, userCode: string): Promise<OauthPayload | undefined> {
      const row = await live(model).where("user_code", "=", userCode).executeTakeFirst();
      return row && open(row, null);
    },

    /** Returns true to exactly one of several concurrent callers. */
    async consume(model: string, id: string): Promise<boolean> {
      const result = await database.write(({ queries }) =>
        queries
          .updateTable("oauth_records")
          .set({ consumed_at: clock.now() })
          .where("model", "=", model)
          .where("id", "=", hash(id))
          .where("consumed_at", "is", null)
          .executeTakeFirst(),
      );
      return Number(result.numUpdatedRows) > 0;
    },

    async remove(model: string, id: string): Promise<void> {
      await database.write(async (tx) => {
        await tx.queries.deleteFrom("oauth_records").where("model", "=", model).where("id", "=", hash(id)).execute();
        if (model === "Grant" || model === "Client") tx.announce({ topic: IDENTITY_TOPIC, key: "grant" });
      });
    },

    /** Removes a consent and everything issued under it. */
    async removeGrant(grantId: string): Promise<void> {
      await database.write(async (tx) => {
        await tx.queries
          .deleteFrom("oauth_records")
          .where((eb) =>
            eb.or([
              eb("grant_hash", "=", hash(grantId)),
              eb.and([eb("model", "=", "Grant"), eb("id", "=", hash(grantId))]),
            ]),
          )
          .execute();
        tx.announce({ topic: IDENTITY_TOPIC, key: "grant" });
      });
    },

    /** One person's signed-in browsers and authorized clients. */
    async listSessions(subject: string): Promise<Session[]> {
      const rows = await database.read
        .selectFrom("oauth_records")
        .selectAll()
        .where("subject", "=", subject)
        .where("model", "in", SESSION_MODELS)
        .where("expires_at", ">", clock.now())
        .orderBy("created_at", "desc")
        .limit(SESSIONS_MAX)
        .execute();
      return rows.map((row) => ({
        id: row.id,
        client: row.model === "Session" ? null : (textOf(open(row, null).clientId) ?? ""),
        createdAt: row.created_at,
        expiresAt: row.expires_at,
      }));
    },

    /** Ends one session (by its id in the list) or, with null, all of them, with every token issued under them. */
    async endSessions(subject: string, id: string | null): Promise<boolean> {
      return database.write(async (tx) => {
        let doomed = tx.queries
          .deleteFrom("oauth_records")
          .where("subject", "=", subject)
          .where("model", "in", SESSION_MODELS);
        if (id !== null) doomed = doomed.where("id", "=", id);
        const rows = await doomed.returningAll().execute();
        for (const row of rows)
          await tx.queries
            .deleteFrom("oauth_records")
            .where("subject", "=", subject)
            .where("grant_hash", "=", row.id)
            .execute();
        tx.announce({ topic: IDENTITY_TOPIC, key: subject });
        return rows.length > 0;
      });
    },

    /** Tells all servers to drop cached credentials. */
    async announceChange(): Promise<void> {
      await database.write(async (tx) => tx.announce({ topic: IDENTITY_TOPIC, key: "token" }));
    },

    async forgetExpired(): Promise<void> {
      await database.write(({ queries }) =>
        queries.deleteFrom("oauth_records").where("expires_at", "<=", clock.now()).execute(),
      );
    },
  };
}

export const grantHash = (grantId: string): string => hash(grantId);

const hash = (id: string): string => createHash("sha256").update(id).digest("base64url");

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);
