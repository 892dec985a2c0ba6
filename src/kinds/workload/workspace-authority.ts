/**
 * The certificate authority of a workspace. Workloads with routes trust it, and the proxy signs certificates of routed
 * hosts with it. Its key is sealed in the store and never leaves the server. A new authority is made long before the old
 * one ends; workloads trust it from their next start on, and it signs once they had time for that.
 */
import { randomWord } from "../../lib/ids.ts";
import { type Clock, DAY_MS, MINUTE_MS } from "../../lib/time/clock.ts";
import { CertificateSigner, type Credential, makeAuthority } from "../../lib/x509/certificate.ts";
import { WORKSPACE_AUTHORITIES } from "../../store/sealing/sealed-columns.ts";
import type { Store } from "../../store/store.ts";

const VALID_MS = 2 * 365 * DAY_MS;
const RENEWED_AFTER_MS = 365 * DAY_MS;
/** Workloads that run for longer than this without a new start do not trust the next authority. */
const OVERLAP_MS = 90 * DAY_MS;
/** Clocks of workloads may be behind. */
const EARLIER_MS = DAY_MS;
const HOST_VALID_MS = 30 * DAY_MS;
const HOST_KEPT_MS = DAY_MS;
const HOSTS_MAX = 1000;
/** How long another server's renewal may go unseen. */
const READ_AGAIN_MS = MINUTE_MS;

interface Authority extends Credential {
  name: string;
  madeMs: number;
}

export interface WorkspaceAuthorities {
  /** The certificates that a workload has to trust, as PEM. */
  trusted(workspace: string): Promise<string[]>;
  /** A certificate for a host. */
  credentialOf(workspace: string, host: string): Promise<Credential>;
}

interface Parts {
  store: Pick<Store, "records" | "keyring" | "workspaces">;
  clock: Clock;
  brand: string;
}

export function createWorkspaceAuthorities({ store, clock, brand }: Parts): WorkspaceAuthorities {
  const read = new Map<string, { untilMs: number; authorities: Promise<Authority[]> }>();
  const hosts = new Map<string, { untilMs: number; credential: Credential }>();

  async function load(workspace: string): Promise<Authority[]> {
    const found = await store.workspaces.get(workspace);
    if (!found) throw new Error(`there is no workspace ${workspace}`);
    const key = `${WORKSPACE_AUTHORITIES}${found.id}`;
    const sealed = await store.records.read(key);
    const kept = sealed === null ? [] : opened(sealed, key);
    if (isFresh(kept)) return kept;
    return store.records.update(key, clock.now() + VALID_MS, (value) => {
      const now = value === null ? [] : opened(value, key);
      const next = isFresh(now)
        ? now
        : [...now.filter(({ madeMs }) => madeMs + VALID_MS > clock.now()), made(workspace)];
      return { value: store.keyring.seal(JSON.stringify(next), key), result: next };
    });
  }

  const opened = (sealed: string, key: string): Authority[] =>
    JSON.parse(store.keyring.open(sealed, key)) as Authority[];

  const isFresh = (authorities: readonly Authority[]): boolean =>
    authorities.some(({ madeMs }) => madeMs + RENEWED_AFTER_MS > clock.now());

  function made(workspace: string): Authority {
    const madeMs = clock.now();
    // Two authorities of one name would be taken for each other.
    const name = `${brand} workspace ${workspace.slice(0, 32)} ${randomWord(6)}`;
    return { name, madeMs, ...makeAuthority(name, { fromMs: madeMs - EARLIER_MS, untilMs: madeMs + VALID_MS }) };
  }

  function authoritiesOf(workspace: string): Promise<Authority[]> {
    const known = read.get(workspace);
    if (known && known.untilMs > clock.now()) return known.authorities;
    const authorities = load(workspace);
    read.set(workspace, { untilMs: clock.now() + READ_AGAIN_MS, authorities });
    authorities.catch(() => read.delete(workspace)); // the caller gets the error
    return authorities;
  }

  return {
    trusted: async (workspace) => (await authoritiesOf(workspace)).map(({ certificate }) => certificate),
    async credentialOf(workspace, host) {
      const key = `${workspace}/${host}`;
      const known = hosts.get(key);
      if (known && known.untilMs > clock.now()) return known.credential;
      const [oldest, ...others] = await authoritiesOf(workspace);
      const signing = others.findLast(({ madeMs }) => madeMs + OVERLAP_MS < clock.now()) ?? oldest;
      if (!signing) throw new Error("a workspace without an authority");
      const now = clock.now();
      const validity = { fromMs: now - EARLIER_MS, untilMs: now + HOST_VALID_MS };
      const credential = new CertificateSigner(signing, signing.name).hostCertificate(host, validity);
      hosts.set(key, { untilMs: now + HOST_KEPT_MS, credential });
      const [first] = hosts.keys();
      if (hosts.size > HOSTS_MAX && first !== undefined) hosts.delete(first);
      return credential;
    },
  };
}
