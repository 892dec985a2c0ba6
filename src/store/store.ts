/** The store: the only room that speaks SQL. Everything the other rooms agree on meets here. */
import { join } from "node:path";
import { createCursorCodec } from "../contract/cursor.ts";
import type { Clock } from "../lib/clock.ts";
import { createSealedBox, deriveKey } from "../lib/sealed-box.ts";
import { createAccountMembers } from "./account-members.ts";
import { createAudit } from "./audit.ts";
import { createClaims } from "./claims.ts";
import { createCronTriggers } from "./cron-triggers.ts";
import type { Database } from "./database.ts";
import { createDeliveries } from "./deliveries.ts";
import { executionCallback } from "./execution-callback.ts";
import { createExecutionQueue } from "./execution-queue.ts";
import { createExecutionViews } from "./execution-views.ts";
import { createExecutions } from "./executions.ts";
import { createExternalIdentities } from "./external-identities.ts";
import { createHeldWords } from "./held-words.ts";
import { createIdempotency } from "./idempotency.ts";
import { createKeys } from "./keys.ts";
import { createLeases } from "./leases.ts";
import { createLinks } from "./links.ts";
import { migrate } from "./migrations/index.ts";
import { createOauthRecords } from "./oauth-records.ts";
import { createPeople } from "./people.ts";
import { createRecords } from "./records.ts";
import { createResources } from "./resources.ts";
import { createShares } from "./shares.ts";
import { createSignInTries } from "./sign-in-tries.ts";
import { createSigningKeys } from "./signing-keys.ts";
import { openSqlite } from "./sqlite.ts";
import { createThreads } from "./threads.ts";
import { createUsage } from "./usage.ts";
import { createWorkloadAccounts } from "./workload-accounts.ts";
import { createWorkspaceContents } from "./workspace-contents.ts";
import { createWorkspaces, IDENTITY_TOPIC } from "./workspaces.ts";

export interface StoreOptions {
  databaseUrl: string | null;
  dataDir: string;
  secretKey: Buffer;
  clock: Clock;
  /** See Resources; by kind. */
  quotas?: Readonly<Record<string, number>>;
  /** Frees some of a full disk, for a database file on it; false when it cannot. */
  makeRoom?(): boolean;
  onError(error: unknown): void;
}

export type Store = Awaited<ReturnType<typeof openStore>>;

export async function openStore({ secretKey, clock, quotas = {}, ...where }: StoreOptions) {
  const database = await openDatabase(where);
  try {
    await migrate(database, clock.now());
  } catch (error) {
    await database.close();
    throw error;
  }
  return composeStore(database, secretKey, clock, quotas);
}

export const SQLITE_FILE = "berth.sqlite";

/** The PostgreSQL half is loaded only by those who use it: it costs start-up time and memory. */
export async function openDatabase({
  databaseUrl,
  dataDir,
  makeRoom,
  onError,
}: Pick<StoreOptions, "databaseUrl" | "dataDir" | "makeRoom" | "onError">): Promise<Database> {
  if (!databaseUrl) return openSqlite(join(dataDir, SQLITE_FILE), makeRoom ? { makeRoom } : {});
  const { openPostgres } = await import("./postgres.ts");
  return openPostgres(databaseUrl, onError);
}

function composeStore(database: Database, secretKey: Buffer, clock: Clock, quotas: Readonly<Record<string, number>>) {
  const box = createSealedBox(deriveKey(secretKey, "resources"));
  const cursors = createCursorCodec(deriveKey(secretKey, "cursors"));
  const deps = { database, clock, box, cursors, quotas };
  const resources = createResources(deps);
  const deliveries = createDeliveries(deps);
  const people = createPeople(deps);
  return {
    database,
    cursors,
    resources,
    claims: createClaims(deps),
    shares: createShares(deps),
    signingKeys: createSigningKeys(deps),
    oauth: createOauthRecords(deps),
    audit: createAudit({ database, clock, key: deriveKey(secretKey, "audit") }),
    signInTries: createSignInTries(deps),
    workspaceContents: createWorkspaceContents({ database, resources }),
    links: createLinks(deps),
    heldWords: createHeldWords(deps),
    workspaces: createWorkspaces(deps),
    people,
    externalIdentities: createExternalIdentities({ ...deps, people }),
    accountMembers: createAccountMembers(deps),
    keys: createKeys(deps),
    workloadAccounts: createWorkloadAccounts(deps),
    idempotency: createIdempotency(deps),
    leases: createLeases(deps),
    records: createRecords(deps),
    executions: {
      ...createExecutions(deps),
      ...createExecutionQueue({ ...deps, ended: executionCallback(deliveries) }),
      ...createExecutionViews(deps),
    },
    deliveries,
    cronTriggers: createCronTriggers(deps),
    threads: createThreads(deps),
    usage: createUsage(deps),
    write: database.write,
    /** Anything about who may do what has changed; whoever caches it forgets. */
    onIdentityChange: (listener: () => void): (() => void) =>
      database.onChange(({ topic }) => {
        if (topic === IDENTITY_TOPIC || topic === "resync") listener();
      }),
    ping: () => database.ping(),
    close: () => database.close(),
  };
}
