/**
 * The custom domains, in memory, because every request asks whether its host belongs to one. A domain that was verified
 * once keeps its hosts away from the management API also while its verification is lost; then they lead nowhere.
 */
import type { Running } from "../lib/lifecycle.ts";
import type { Resource } from "../store/resources/resource.ts";
import { wholeAccount } from "../store/resources/shares.ts";
import type { Store } from "../store/store.ts";
import { nearestIn } from "./nearest-domain.ts";

export interface Domain {
  name: string;
  workspace: string;
  /** Whether DNS proves the domain now. */
  verified: boolean;
  /** Name of the application that the domain itself leads to. */
  application: string | null;
  /** Name of a preview of the workspace, for hosts that no resource claims. */
  fallbackPreview: string | null;
}

type Domains = ReadonlyMap<string, Domain>;

/** A part of the table for other processes, which only ask whether a host belongs to a domain. */
export interface DomainNames {
  all(): string[];
  onChange(listener: (change: { added: string[]; removed: string[] }) => void): void;
}

export interface DomainTable extends Running {
  readonly names: DomainNames;
  /** Whether the host is at or below a custom domain, as far as this server knows. */
  covers(host: string): boolean;
  /** The verified domain that is nearest to the host, with every change that was committed before the call. */
  nearest(host: string): Promise<Domain | null>;
  /** Whether a workspace may serve hosts below the domain: the owner, or a workspace that it was lent to. */
  isOpenTo(domain: Domain, workspace: string): Promise<boolean>;
  /** Resolves when the table was read for the first time. */
  opened(): Promise<void>;
}

const KIND = "customdomain";
const PAGE = 500;

export function createDomainTable({ store }: { store: Store }): DomainTable {
  let domains: Domains = new Map();
  let changes = 1;
  let changesRead = 0;
  let reading: Promise<void> | null = null;
  const listeners: Parameters<DomainNames["onChange"]>[0][] = [];

  async function read(): Promise<void> {
    while (changesRead !== changes) {
      const before = changes;
      const next = await readDomains(store);
      const added = [...next.keys()].filter((name) => !domains.has(name));
      const removed = [...domains.keys()].filter((name) => !next.has(name));
      domains = next;
      changesRead = before;
      if (added.length + removed.length > 0) for (const listener of listeners) listener({ added, removed });
    }
  }
  const upToDate = (): Promise<void> => {
    reading ??= read().finally(() => {
      reading = null;
    });
    return reading;
  };
  const unsubscribe = store.resources.onChange((kind) => {
    if (kind !== KIND) return;
    changes += 1;
    // A failed read is repeated by the next request to a custom domain.
    upToDate().catch(() => {});
  });

  return {
    names: { all: () => [...domains.keys()], onChange: (listener) => void listeners.push(listener) },
    covers: (host) => nearestIn(domains, host) !== undefined,
    async nearest(host) {
      if (changesRead !== changes) await upToDate();
      const found = nearestIn(domains, host);
      return found?.verified ? found : null;
    },
    async isOpenTo(domain, workspace) {
      if (domain.workspace === workspace) return true;
      const accountId = (await store.workspaces.get(workspace))?.accountId ?? "";
      const lent = await store.shares.resourcesFor([workspace, wholeAccount(accountId)], KIND, domain.name);
      return lent.some((one) => one.workspace === domain.workspace);
    },
    opened: upToDate,
    async stop() {
      unsubscribe();
    },
  };
}

async function readDomains({ resources }: Store): Promise<Domains> {
  const found = new Map<string, Domain>();
  for (let after = ""; ; ) {
    const page = await resources.listAcrossWorkspaces(KIND, after, PAGE);
    for (const resource of page) {
      const domain = domainOf(resource);
      // Several workspaces may have a record of one domain; it is verified for one of them.
      if (domain !== null && !found.get(domain.name)?.verified) found.set(domain.name, domain);
    }
    if (page.length < PAGE) return found;
    after = page.at(-1)?.uid ?? "";
  }
}

function domainOf({ name, workspace, spec, deletedAt, retired }: Resource): Domain | null {
  const verified = spec.status === "verified";
  if (deletedAt !== null || retired || (!verified && spec.lastVerifiedAt === undefined)) return null;
  return {
    ...{ name, workspace, verified },
    application: textOrNull(spec.application),
    fallbackPreview: textOrNull(spec.fallbackPreviewId),
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
