/** The store: the only room that speaks SQL. Everything the other rooms agree on meets here. */
import { join } from "node:path";
import { createCursorCodec } from "../contract/cursor.ts";
import { createSealedBox, deriveKey } from "../lib/sealed-box.ts";
import type { Clock } from "../lib/time/clock.ts";
import { createAudit } from "./audit.ts";
import type { Database } from "./database/database.ts";
import { migrate } from "./database/migrations/index.ts";
import { openSqlite } from "./database/sqlite.ts";
import { createCronTriggers } from "./deliveries/cron-triggers.ts";
import { createDeliveries } from "./deliveries/deliveries.ts";
import { executionCallback } from "./executions/callback.ts";
import { createExecutions } from "./executions/executions.ts";
import { createExecutionQueue } from "./executions/queue.ts";
import { createExecutionViews } from "./executions/views.ts";
import { createIdempotency } from "./idempotency.ts";
import { createLeases } from "./leases.ts";
import { createAccountMembers } from "./people/account-members.ts";
import { createExternalIdentities } from "./people/external-identities.ts";
import { createKeys } from "./people/keys.ts";
import { createOauthRecords } from "./people/oauth-records.ts";
import { createPeople } from "./people/people.ts";
import { createSignInTries } from "./people/sign-in-tries.ts";
import { createSigningKeys } from "./people/signing-keys.ts";
import { createWorkloadAccounts } from "./people/workload-accounts.ts";
import { createWorkspaceContents } from "./people/workspace-contents.ts";
import { createWorkspaces, IDENTITY_TOPIC } from "./people/workspaces.ts";
import { createRecords } from "./records.ts";
import { createClaims } from "./resources/claims.ts";
import { createHeldWords } from "./resources/held-words.ts";
import { createLinks } from "./resources/links.ts";
import { createResources } from "./resources/resources.ts";
import { createShares } from "./resources/shares.ts";
import { createThreads } from "./threads.ts";
import { createUsage } from "./usage/usage.ts";

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
  const { openPostgres } = await import("./database/postgres.ts");
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
