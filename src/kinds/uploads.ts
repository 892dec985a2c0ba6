/**
 * URLs to which a client uploads an archive for a resource. The URL itself is the permission: it is sealed and cannot
 * be forged, its nonce is stored in the record so that it works once, and it expires.
 */
import { PlatformError } from "../contract/errors.ts";
import { randomWord } from "../lib/ids.ts";
import { createSealedBox, type SealedBox } from "../lib/sealed-box.ts";
import { MINUTE_MS } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Behaviour, Call, Platform, Uploads } from "./port.ts";
import type { UploadTicket } from "./upload-ticket.ts";

const UPLOAD_WITHIN_MS = 60 * MINUTE_MS;
/** Bytes of an archive: a project without its dependencies. Larger files belong into a volume or an image. */
export const ARCHIVE_BYTES_MAX = 1024 * 1024 * 1024;
/** Limits of an unpacked archive, many times what a project without its dependencies needs. */
export const PROJECT_LIMITS = { entriesMax: 50_000, bytesMax: 2 * 1024 * 1024 * 1024 };
const CONTEXT = "upload";

interface Address {
  workspace: string;
  uid: string;
  nonce: string;
}

export const ticketOf = ({ state }: { state: { upload?: UploadTicket } }): UploadTicket | undefined => state.upload;

/** The state that waits for the archive; empty when the call announces none. */
export function openUpload(
  { uploads }: Behaviour,
  call: Call,
  current: Resource | null,
  { clock }: Pick<Platform, "clock">,
): { upload?: UploadTicket } {
  if (!uploads || call.query.upload !== true) return {};
  return { upload: ticketFor(uploads.nameOf(call, current), clock.now()) };
}

export const ticketFor = (revision: string, nowMs: number): UploadTicket => ({
  revision,
  nonce: randomWord(24),
  expiresAt: nowMs + UPLOAD_WITHIN_MS,
});

/** Tells the client the upload URL, and its path, which is good at every host of the management API. */
export function announceUpload(call: Pick<Call, "setHeader">, resource: Resource, deps: Platform): void {
  const { nonce } = ticketOf(resource) ?? {};
  if (nonce === undefined) return;
  const { brand, publicUrl } = deps.settings;
  const token = boxOf(deps).seal(
    JSON.stringify({ workspace: resource.workspace, uid: resource.uid, nonce } satisfies Address),
    CONTEXT,
  );
  const path = `/uploads/${token}`;
  for (const word of new Set([brand, "service"])) {
    call.setHeader(`x-${word}-upload-url`, publicUrl + path);
    call.setHeader(`x-${word}-upload-path`, path);
  }
}

export async function receiveUpload(
  token: string,
  archive: NodeJS.ReadableStream,
  uploadsOf: (kind: string) => Uploads | undefined,
  deps: Platform,
): Promise<void> {
  const address = readToken(token, deps);
  if (arriving.has(address.nonce))
    throw new PlatformError("conflict", "An archive arrives at this upload address already. Wait for its end.");
  arriving.add(address.nonce);
  try {
    await receiveOnly(address, archive, uploadsOf, deps);
  } finally {
    arriving.delete(address.nonce);
  }
}

/** Nonces of addresses that an archive arrives at: each archive is a file of up to a gigabyte, and one is taken. */
const arriving = new Set<string>();

async function receiveOnly(
  { workspace, uid, nonce }: Address,
  archive: NodeJS.ReadableStream,
  uploadsOf: (kind: string) => Uploads | undefined,
  deps: Platform,
): Promise<void> {
  const { store, clock, here } = deps;
  const openIn = (resource: Resource | null): UploadTicket | null => {
    const ticket = resource && resource.deletedAt === null ? ticketOf(resource) : undefined;
    return ticket?.nonce === nonce && ticket.expiresAt > clock.now() ? ticket : null;
  };
  // Checked before the body is read, and again in the transaction that takes the archive.
  const resource = await store.resources.getByUid(workspace, uid);
  const ticket = openIn(resource);
  const rules = resource ? uploadsOf(resource.kind) : undefined;
  if (!ticket || !rules) throw closed();
  const blob = await here.blobs.put(archive, ARCHIVE_BYTES_MAX);
  const { change, refusal, begin } = await rules.take(blob, ticket.revision, deps);
  let taken = false;
  const changed = await store.resources.update(workspace, uid, (current) => {
    taken = openIn(current) !== null;
    const { upload: _upload, ...state } = current.state;
    return taken ? change({ ...current, state }) : null;
  });
  if (!taken) throw closed();
  if (refusal) throw refusal;
  if (changed) begin?.(changed, deps);
}

function readToken(token: string, deps: Platform): Address {
  try {
    return JSON.parse(boxOf(deps).open(token, CONTEXT)) as Address;
  } catch {
    throw closed();
  }
}

const boxOf = (deps: Platform): SealedBox => createSealedBox(deps.keyFor("uploads"));

const closed = (): PlatformError =>
  new PlatformError(
    "forbidden",
    "This upload address is not valid, was used already, has expired, or a later deployment took its place. Ask for another.",
  );
