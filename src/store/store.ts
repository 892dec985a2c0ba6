/** The store: the only room that speaks SQL. Other rooms share state only through it. */
import { join } from "node:path";
import { createCursorCodec } from "../contract/cursor.ts";
import type { Running } from "../lib/lifecycle.ts";
import { deriveKey } from "../lib/sealed-box.ts";
import type { Clock } from "../lib/time/clock.ts";
import { createAudit } from "./audit.ts";
import { createBlobs } from "./blobs.ts";
import { createCertificates } from "./certificates.ts";
import type { Database } from "./database/database.ts";
import { migrate } from "./database/migrations/index.ts";
import { openSqlite } from "./database/sqlite.ts";
import { createCronTriggers } from "./deliveries/cron-triggers.ts";
import { createDeliveries } from "./deliveries/deliveries.ts";
import { executionCallback } from "./executions/callback.ts";
import { createExecutions } from "./executions/executions.ts";
import { createExecutionGrid } from "./executions/grid.ts";
import { createExecutionQueue } from "./executions/queue.ts";
import { createExecutionViews } from "./executions/views.ts";
import { createIdempotency } from "./idempotency.ts";
import { createLeases } from "./leases.ts";
import { createNodes } from "./nodes/nodes.ts";
import { createOwnership } from "./nodes/ownership.ts";
import { createAccountMembers } from "./people/account-members.ts";
import { createExternalIdentities } from "./people/external-identities.ts";
import { createKeys } from "./people/keys.ts";
import { createOauthRecords } from "./people/oauth-records.ts";
import { createPeople } from "./people/people.ts";
import { createSharedUses } from "./people/shared-uses.ts";
import { createSignInTries } from "./people/sign-in-tries.ts";
import { createSigningKeys } from "./people/signing-keys.ts";
import { createWorkloadAccounts } from "./people/workload-accounts.ts";
import { createWorkspaceContents } from "./people/workspace-contents.ts";
import { createWorkspaces, IDENTITY_TOPIC } from "./people/workspaces.ts";
import { createPushedImages } from "./pushed-images.ts";
import { createRecords } from "./records.ts";
import { createClaims } from "./resources/claims.ts";
import { createHeldWords } from "./resources/held-words.ts";
import { createLinks } from "./resources/links.ts";
import { createResources } from "./resources/resources.ts";
import { createShares } from "./resources/shares.ts";
import { createKeyRecords, type Unlock } from "./sealing/key-records.ts";
import type { Keyring } from "./sealing/keyring.ts";
import { followKeys } from "./sealing/other-servers.ts";
import { createRotation } from "./sealing/rotation.ts";
import { createThreads } from "./threads.ts";
import { createUsage } from "./usage/usage.ts";

export interface StoreOptions {
  databaseUrl: string | null;
  dataDir: string;
  unlock: Unlock;
  clock: Clock;
  /** Most resources per workspace, by kind; see Resources. */
  quotas?: Readonly<Record<string, number>>;
  /** Frees reserved space on a full disk for the database file; returns false when it cannot. */
  makeRoom?(): boolean;
  onError(error: unknown): void;
}

export type Store = Awaited<ReturnType<typeof openStore>>;

export async function openStore({ unlock, clock, quotas = {}, ...where }: StoreOptions) {
  const database = await openDatabase(where);
  try {
    await migrate(database, clock.now());
    const keyRecords = createKeyRecords(database);
    const isNew = (await keyRecords.state()).fingerprint === null;
    const keyring = await unlock(keyRecords);
    const root = await keyRecords.root(keyring, isNew);
    const follower = followKeys({ database, records: keyRecords, keyring, onError: where.onError });
    return composeStore({ database, keyring, keyRecords, follower, root, clock, quotas });
  } catch (error) {
    await database.close();
    throw error;
  }
}

export const SQLITE_FILE = "berth.sqlite";

/** Loads the PostgreSQL half only when it is used: it costs start-up time and memory. */
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

interface StoreParts {
  database: Database;
  keyring: Keyring;
  keyRecords: ReturnType<typeof createKeyRecords>;
  follower: Running;
  root: Buffer;
  clock: Clock;
  quotas: Readonly<Record<string, number>>;
}

function composeStore({ database, keyring, keyRecords, follower, root, clock, quotas }: StoreParts) {
  const keyFor = (purpose: string): Buffer => deriveKey(root, purpose);
  const cursors = createCursorCodec(keyFor("cursors"));
  const deps = { database, clock, box: keyring, cursors, quotas };
  const resources = createResources(deps);
  const deliveries = createDeliveries(deps);
  const people = createPeople(deps);
  return {
    database,
    keyring,
    keyRecords,
    rotateKey: createRotation({ database, records: keyRecords, keyring, forgetResource: resources.forgetCached }),
    /** Derives a key for one purpose. It stays the same when the secret key is rotated. */
    keyFor,
    cursors,
    resources,
    claims: createClaims(deps),
    shares: createShares(deps),
    signingKeys: createSigningKeys(deps),
    oauth: createOauthRecords(deps),
    audit: createAudit({ database, clock, key: keyFor("audit") }),
    signInTries: createSignInTries(deps),
    sharedUses: createSharedUses(deps),
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
    nodes: createNodes(deps),
    blobs: createBlobs(deps),
    pushedImages: createPushedImages(deps),
    certificates: createCertificates(deps),
    ownership: createOwnership({ database, forget: resources.forgetCached }),
    records: createRecords(deps),
    executions: {
      ...createExecutions(deps),
      ...createExecutionQueue({ ...deps, ended: executionCallback(deliveries) }),
      ...createExecutionViews(deps),
      ...createExecutionGrid(deps),
    },
    deliveries,
    cronTriggers: createCronTriggers(deps),
    threads: createThreads(deps),
    usage: createUsage(deps),
    write: database.write,
    /** Calls the listener after any change of identities or permissions, so that caches can be dropped. */
    onIdentityChange: (listener: () => void): (() => void) =>
      database.onChange(({ topic }) => {
        if (topic === IDENTITY_TOPIC || topic === "resync") listener();
      }),
    ping: () => database.ping(),
    async close(): Promise<void> {
      await follower.stop();
      await database.close();
    },
  };
}
