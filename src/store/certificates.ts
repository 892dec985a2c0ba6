/**
 * Certificates by name (`shop.example.com`, `*.apps.example.com`), of custom domains and of the platform itself, and
 * the accounts with which they were asked for. Private keys are sealed. A failure to renew leaves the last good
 * certificate in place.
 */
import { uuidv7 } from "../lib/ids.ts";
import type { SealedBox } from "../lib/sealed-box.ts";
import type { Database } from "./database/database.ts";
import type { CertificateRow } from "./database/schema.ts";

/** Changes of certificates; the key is the name. */
export const CERTIFICATE_TOPIC = "certificate";

export type CertificateSource = "acme" | "upload";

/** A certificate without its private key. */
export interface CertificateRecord {
  name: string;
  /** The custom domain that it belongs to; "" for the platform's own names. */
  domainUid: string;
  source: CertificateSource;
  /** PEM, the certificate of the name first; "" while there is none. */
  chain: string;
  notBefore: number;
  notAfter: number;
  /** When the platform asks for the next one; 0 = never: an uploaded certificate, or one that was revoked for good. */
  renewAt: number;
  /** Why the last attempt failed; "" when it did not. */
  failure: string;
  failures: number;
  retryAt: number;
  /** When the authority revoked it; 0 for a certificate that is good. */
  revokedAt: number;
}

export type Issued = Pick<
  CertificateRecord,
  "domainUid" | "source" | "chain" | "notBefore" | "notAfter" | "renewAt"
> & {
  key: string;
};

/** A revoked certificate is served on only until the next one is there. */
const isServed = ({ chain, revokedAt, renewAt }: Pick<CertificateRecord, "chain" | "revokedAt" | "renewAt">) =>
  chain !== "" && (revokedAt === 0 || renewAt > 0);

export type Certificates = ReturnType<typeof createCertificates>;

export function createCertificates({ database, box }: { database: Database; box: SealedBox }) {
  return {
    async list(domainUid?: string): Promise<CertificateRecord[]> {
      const rows = database.read.selectFrom("certificates").selectAll().orderBy("name");
      const found = domainUid === undefined ? rows : rows.where("domain_uid", "=", domainUid);
      return (await found.execute()).map(recordOf);
    },

    async get(name: string): Promise<CertificateRecord | null> {
      const row = await rowOf(database, name);
      return row ? recordOf(row) : null;
    },

    /** The certificate and its private key, in PEM; null where no certificate is served. */
    async credential(name: string): Promise<{ certificate: string; key: string } | null> {
      const row = await rowOf(database, name);
      if (!row || !isServed(recordOf(row))) return null;
      return { certificate: row.chain, key: box.open(row.sealed_key, row.name) };
    },

    /** The private key, in PEM, also of a certificate that is no longer served. */
    async keyOf(name: string): Promise<string> {
      const row = await rowOf(database, name);
      if (!row) throw new Error(`there is no certificate for ${name}`);
      return box.open(row.sealed_key, row.name);
    },

    /** One certificate for several names. */
    put: (names: readonly string[], { domainUid, key, ...issued }: Issued): Promise<void> =>
      database.write(async ({ queries, announce }) => {
        for (const name of names) {
          const values = {
            domain_uid: domainUid,
            source: issued.source,
            chain: issued.chain,
            sealed_key: box.seal(key, name),
            not_before: issued.notBefore,
            not_after: issued.notAfter,
            renew_at: issued.renewAt,
            ...{ failure: "", failures: 0, retry_at: 0, revoked_at: 0 },
          };
          await queries
            .insertInto("certificates")
            .values({ name, ...values })
            .onConflict((conflict) => conflict.column("name").doUpdateSet(values))
            .execute();
          announce({ topic: CERTIFICATE_TOPIC, key: name });
        }
      }),

    /** Records a failed attempt; a certificate that is there stays. */
    fail: (name: string, domainUid: string, failure: string, retryAt: number): Promise<void> =>
      database.write(async ({ queries, announce }) => {
        const none = { chain: "", sealed_key: box.seal("", name), not_before: 0, not_after: 0, renew_at: 0 };
        await queries
          .insertInto("certificates")
          .values({
            ...{ name, domain_uid: domainUid, source: "acme", ...none },
            ...{ failure, failures: 1, retry_at: retryAt, revoked_at: 0 },
          })
          .onConflict((conflict) =>
            conflict.column("name").doUpdateSet((eb) => ({
              failure,
              failures: eb("certificates.failures", "+", 1),
              retry_at: retryAt,
            })),
          )
          .execute();
        announce({ topic: CERTIFICATE_TOPIC, key: name });
      }),

    /** Marks a certificate as revoked, for all names that it is for. `renewAt`: when to ask for the next; 0 = never. */
    revoked: (chain: string, revokedAt: number, renewAt: number): Promise<void> =>
      database.write(async ({ queries, announce }) => {
        const rows = await queries
          .updateTable("certificates")
          .set({ revoked_at: revokedAt, renew_at: renewAt, failure: "", failures: 0, retry_at: 0 })
          .where("chain", "=", chain)
          .returning("name")
          .execute();
        for (const { name } of rows) announce({ topic: CERTIFICATE_TOPIC, key: name });
      }),

    remove: (names: readonly string[]): Promise<void> =>
      database.write(async ({ queries, announce }) => {
        if (names.length === 0) return;
        await queries.deleteFrom("certificates").where("name", "in", names).execute();
        for (const name of names) announce({ topic: CERTIFICATE_TOPIC, key: name });
      }),

    /** Records that a workspace ("" for the platform) is about to order a certificate. */
    noteOrder: (workspace: string, nowMs: number): Promise<void> =>
      database.write(async ({ queries }) => {
        const row = { id: uuidv7(nowMs), workspace, ordered_at: nowMs };
        await queries.insertInto("certificate_orders").values(row).execute();
      }),

    /** Orders of each workspace since `sinceMs`, also those for domains that are gone. */
    async ordersSince(sinceMs: number): Promise<Map<string, number>> {
      const rows = await database.read
        .selectFrom("certificate_orders")
        .select(({ fn }) => ["workspace", fn.countAll<number>().as("orders")])
        .where("ordered_at", ">", sinceMs)
        .groupBy("workspace")
        .execute();
      return new Map(rows.map(({ workspace, orders }) => [workspace, Number(orders)]));
    },

    forgetOrders: (beforeMs: number): Promise<void> =>
      database.write(async ({ queries }) => {
        await queries.deleteFrom("certificate_orders").where("ordered_at", "<=", beforeMs).execute();
      }),

    /** The account at an authority; `make` registers one at first use. */
    async account(
      directory: string,
      make: () => Promise<{ url: string; key: string }>,
    ): Promise<{ url: string; key: string }> {
      const context = `account ${directory}`;
      const read = () =>
        database.read.selectFrom("acme_accounts").selectAll().where("directory", "=", directory).executeTakeFirst();
      const known = await read();
      if (known) return { url: known.url, key: box.open(known.sealed_key, context) };
      const made = await make();
      await database.write(({ queries }) =>
        queries
          .insertInto("acme_accounts")
          .values({ directory, url: made.url, sealed_key: box.seal(made.key, context) })
          .onConflict((conflict) => conflict.doNothing())
          .execute(),
      );
      return made;
    },
  };
}

const rowOf = (database: Database, name: string): Promise<CertificateRow | undefined> =>
  database.read.selectFrom("certificates").selectAll().where("name", "=", name).executeTakeFirst();

const recordOf = (row: CertificateRow): CertificateRecord => ({
  name: row.name,
  domainUid: row.domain_uid,
  source: row.source === "upload" ? "upload" : "acme",
  chain: row.chain,
  notBefore: Number(row.not_before),
  notAfter: Number(row.not_after),
  renewAt: Number(row.renew_at),
  failure: row.failure,
  failures: Number(row.failures),
  retryAt: Number(row.retry_at),
  revokedAt: Number(row.revoked_at),
});
