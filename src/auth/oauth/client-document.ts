/**
 * Programs whose client id is an address (client id metadata documents): the document at that address describes the
 * program, so it need not register. Anybody may name any address, so little is fetched and little is given: the guarded
 * outbound client, a few fetches, small answers, and the rights of a program that registered itself.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { z } from "zod";
import { createNetworkLimiter } from "../../lib/network/network-limiter.ts";
import type { Outbound } from "../../lib/network/outbound-http.ts";
import { OutboundError } from "../../lib/network/outbound-http.ts";
import { type Clock, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";
import { type ClientRecord, isDocument } from "./clients.ts";
import { clientNamed, programMetadata } from "./registration.ts";

/**
 * Fetches of unknown documents per 15 minutes: of one host, so that nobody is flooded through this server, and of all.
 * A document that is known is fetched again without: who uses up these numbers locks out no program that is in use.
 */
const FETCHES_MAX = { host: 20, all: 300 };
/** What one client address may cause of them: one address alone uses up none of these numbers. */
const FETCHES_OF_ADDRESS = { burst: 5, perMinute: 0.5 };
const DOCUMENT_BYTES_MAX = 16 * 1024;
const FETCH_MS = 10_000;
const FRESH_MS = HOUR_MS;
/** A document that cannot be fetched again counts for this long, so that an outage there signs nobody out here. */
const KEPT_SECONDS = (24 * HOUR_MS) / SECOND_MS;
/** How long an address without a usable document is not asked again. */
const REFUSED_MS = MINUTE_MS;
const REFUSED_MAX = 1000;
const URL_MAX_LENGTH = 512;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** A model of the OAuth records. */
const MODEL = "ClientDocument";

const document = programMetadata.extend({
  client_id: z.string(),
  token_endpoint_auth_method: z.literal("none").default("none"),
});

const asking = new AsyncLocalStorage<string>();

/** Runs `work` of the authorization server for a client at this address. */
export const askedFrom = <T>(address: string, work: () => T): T => asking.run(address, work);

/** Says nothing about the document: others may ask for it. */
class TooManyFetches extends OutboundError {}

export interface ClientDocuments {
  /** Undefined when there is no usable document at the address. */
  find(clientId: string): Promise<ClientRecord | undefined>;
}

export interface ClientDocumentsDeps {
  store: Store;
  clock: Clock;
  outbound: Outbound;
  scopes: ReadonlySet<string>;
  log: { warn(fields: object, message: string): void };
  /** Whether plain addresses of this machine may be named, for development. */
  loopback: boolean;
}

export function createClientDocuments(deps: ClientDocumentsDeps): ClientDocuments {
  const { store, clock, log } = deps;
  const refusedAt = new Map<string, number>();
  const underWay = new Map<string, Promise<ClientRecord | undefined>>();
  const byAddress = createNetworkLimiter(clock, FETCHES_OF_ADDRESS);

  async function requireTurn(clientId: string): Promise<void> {
    const isTooMuch = byAddress.take(asking.getStore() ?? "") > 0;
    const limits = [
      { key: `client-document:${new URL(clientId).host}`, max: FETCHES_MAX.host },
      { key: "client-document", max: FETCHES_MAX.all },
    ];
    if (isTooMuch || (await store.signInTries.count(limits)) !== "allowed")
      throw new TooManyFetches("Too many documents of clients are fetched.");
  }

  async function fetched(clientId: string, isKnown: boolean): Promise<ClientRecord | undefined> {
    try {
      if (!isKnown) await requireTurn(clientId);
      const record = await fetchDocument(clientId, deps);
      await store.oauth.put(MODEL, clientId, { record, fetchedAt: clock.now() }, KEPT_SECONDS);
      return record;
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      if (refusedAt.size >= REFUSED_MAX) refusedAt.clear();
      if (!(error instanceof TooManyFetches)) refusedAt.set(clientId, clock.now());
      log.warn({ clientId, err: error }, "the document of an OAuth client was refused");
      return undefined;
    }
  }

  return {
    async find(clientId) {
      if (!isDocument(clientId) || !isAddress(clientId, deps.loopback)) return undefined;
      const kept = (await store.oauth.find(MODEL, clientId)) as { record: ClientRecord; fetchedAt: number } | undefined;
      if (kept && clock.now() - kept.fetchedAt < FRESH_MS) return kept.record;
      if (clock.now() - (refusedAt.get(clientId) ?? Number.NEGATIVE_INFINITY) < REFUSED_MS) return kept?.record;
      const fetching = underWay.get(clientId) ?? fetched(clientId, kept !== undefined);
      underWay.set(clientId, fetching);
      return (await fetching.finally(() => underWay.delete(clientId))) ?? kept?.record;
    },
  };
}

/** The id is compared as text, so an address that could be written in another way is none. */
function isAddress(text: string, loopback: boolean): boolean {
  if (text.length > URL_MAX_LENGTH || !URL.canParse(text)) return false;
  const url = new URL(text);
  const isPlain =
    url.href === text && url.username === "" && url.password === "" && url.hash === "" && url.search === "";
  if (!isPlain || url.pathname === "/") return false;
  return url.protocol === "https:" || (loopback && LOOPBACK.has(url.hostname));
}

async function fetchDocument(clientId: string, { outbound, scopes }: ClientDocumentsDeps): Promise<ClientRecord> {
  const signal = AbortSignal.timeout(FETCH_MS);
  const headers = { accept: "application/json" };
  const answer = await outbound.request(clientId, { method: "GET", headers, signal, bytesMax: DOCUMENT_BYTES_MAX });
  if (answer.status !== 200 || !/^application\/([\w.-]+\+)?json\b/i.test(answer.contentType))
    throw new OutboundError(`It answered with status ${answer.status} and ${answer.contentType.slice(0, 100)}.`);
  const { success, data } = document.safeParse(parsed(answer.text));
  if (!success || data.client_id !== clientId) throw new OutboundError("It is not the document of this client.");
  return clientNamed(clientId, data, scopes);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
