/**
 * Addresses to which a client sends the code of a new revision. The address is the permission: sealed, so nobody can
 * make one; with a nonce that the record holds, so it works once; and only for a while.
 */
import { PlatformError } from "../../contract/errors.ts";
import { MINUTE_MS } from "../../lib/clock.ts";
import { randomWord } from "../../lib/ids.ts";
import { createSealedBox, type SealedBox } from "../../lib/sealed-box.ts";
import type { Resource } from "../../store/resource.ts";
import type { Call, Deps } from "../port.ts";
import { stateOf, type UploadTicket } from "./deploy-state.ts";

const UPLOAD_WITHIN_MS = 60 * MINUTE_MS;
/** A project without its dependencies; larger things belong into a volume or an image. */
export const ARCHIVE_BYTES_MAX = 1024 * 1024 * 1024;
const CONTEXT = "upload";

interface Address {
  workspace: string;
  uid: string;
  nonce: string;
}

export const openUpload = (revision: string, { clock }: Pick<Deps, "clock">): UploadTicket => ({
  revision,
  nonce: randomWord(24),
  expiresAt: clock.now() + UPLOAD_WITHIN_MS,
});

/** Tells the client where to send the archive. */
export function announceUpload(call: Call, resource: Resource, deps: Deps): void {
  const { nonce } = stateOf(resource).upload ?? {};
  if (nonce === undefined) return;
  const { brand, publicUrl } = deps.settings;
  const token = boxOf(deps).seal(
    JSON.stringify({ workspace: resource.workspace, uid: resource.uid, nonce } satisfies Address),
    CONTEXT,
  );
  for (const word of new Set([brand, "service"]))
    call.setHeader(`x-${word}-upload-url`, `${publicUrl}/uploads/${token}`);
}

export async function receiveUpload(token: string, archive: NodeJS.ReadableStream, deps: Deps): Promise<void> {
  const { workspace, uid, nonce } = readToken(token, deps);
  const { store, blobs, clock } = deps;
  const isOpen = (resource: Resource | null): boolean => {
    const ticket = resource && resource.deletedAt === null ? stateOf(resource).upload : undefined;
    return ticket?.nonce === nonce && ticket.expiresAt > clock.now();
  };
  // Asked before anything is read, and again in the transaction that takes it.
  if (!isOpen(await store.resources.getByUid(workspace, uid))) throw closed();
  const { digest } = await blobs.put(archive, ARCHIVE_BYTES_MAX);
  let taken = false;
  await store.resources.update(workspace, uid, (current) => {
    const { upload, ...state } = stateOf(current);
    if (!isOpen(current) || !upload) return null;
    taken = true;
    const revisions = { ...state.revisions, [upload.revision]: { source: digest, uploadedAt: clock.now() } };
    return {
      state: { ...state, revisions },
      status: "BUILDING",
      event: { type: "uploaded", message: "The archive has arrived.", revision: upload.revision },
    };
  });
  if (!taken) throw closed();
}

function readToken(token: string, deps: Deps): Address {
  try {
    return JSON.parse(boxOf(deps).open(token, CONTEXT)) as Address;
  } catch {
    throw closed();
  }
}

const boxOf = (deps: Deps): SealedBox => createSealedBox(deps.keyFor("uploads"));

const closed = (): PlatformError =>
  new PlatformError(
    "forbidden",
    "This upload address is not valid, was used already, or has expired. Ask for another.",
  );
