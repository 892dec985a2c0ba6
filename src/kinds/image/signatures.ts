/**
 * Workspaces that run signed images only. The images that the operator installed belong to the platform and are not
 * asked for a signature; every other image that a workload or a Dockerfile names needs one by a key of the workspace.
 */
import { createHash, createPublicKey, type KeyObject } from "node:crypto";
import { PlatformError } from "../../contract/errors.ts";
import type { PullRequest } from "../../node/images/puller.ts";
import { isSignedBy } from "../../registry/signature.ts";
import type { Deps } from "../port.ts";
import { findImage, type ImageTag, tagsOf } from "./images.ts";

type SignatureDeps = Pick<Deps, "store" | "puller">;

/** An image whose signature is asked for. */
export interface Signable {
  /** As people write it. */
  text: string;
  /** Digest of the manifest, and of the index that led to it. */
  digest: string;
  named?: string | undefined;
  known: Pick<ImageTag, "digest" | "signedBy"> | null;
}

/** The keys of the workspace, by their fingerprints; null when it runs any image. */
async function keysOf(
  workspace: string,
  { store }: Pick<SignatureDeps, "store">,
): Promise<Map<string, KeyObject> | null> {
  const runtime = (await store.workspaces.get(workspace))?.runtime as SigningRuntime | undefined;
  const keys = runtime?.imageSignatures?.publicKeys;
  return keys ? new Map(keys.map((pem) => [fingerprintOf(pem), createPublicKey(pem)])) : null;
}

export const runsSignedOnly = async (workspace: string, deps: Pick<SignatureDeps, "store">): Promise<boolean> =>
  (await keysOf(workspace, deps)) !== null;

interface SigningRuntime {
  imageSignatures?: { publicKeys?: string[] } | null;
}

const fingerprintOf = (pem: string): string =>
  createHash("sha256")
    .update(createPublicKey(pem).export({ type: "spki", format: "der" }))
    .digest("hex");

const refused = (text: string, workspace: string, reason: string): PlatformError =>
  new PlatformError(
    "unprocessable",
    `The image ${text} is refused: the workspace '${workspace}' runs signed images only, and ${reason}.`,
    { detail: { reason: "unsigned" } },
  );

/** Refuses an image that came as a file or was built here: such images have no signature. */
export async function refuseUnsigned(text: string, workspace: string, deps: SignatureDeps): Promise<void> {
  if (await keysOf(workspace, deps))
    throw refused(text, workspace, "an image that was loaded from a file or built here has no signature");
}

/** Returns the fingerprint of the key that signed the image; null when the workspace asks for none. */
export async function requireSigned(
  { text, digest, named, known }: Signable,
  workspace: string,
  request: () => Promise<PullRequest>,
  signal: AbortSignal,
  deps: SignatureDeps,
): Promise<string | null> {
  const keys = await keysOf(workspace, deps);
  if (!keys) return null;
  // What was verified once stays so: the registry is not asked at every start.
  if (known?.signedBy !== undefined && known.digest === digest && keys.has(known.signedBy)) return known.signedBy;
  const asked = await request();
  let count = 0;
  for (const each of new Set([named ?? digest, digest])) {
    const signatures = await deps.puller.signatures(asked, each, signal);
    count += signatures.length;
    for (const [fingerprint, key] of keys)
      if (signatures.some((signature) => isSignedBy(signature, each, key))) return fingerprint;
  }
  throw refused(
    text,
    workspace,
    count === 0 ? `${digest} is not signed` : `no signature of ${digest} is by a key of the workspace`,
  );
}

/** Records who signed the content of a tag. */
export async function noteSigned(
  place: { workspace: string; resourceType: string; name: string; tag: string },
  digest: string,
  fingerprint: string,
  { store }: Pick<SignatureDeps, "store">,
): Promise<void> {
  const record = await findImage(place.workspace, place.resourceType, place.name, { store });
  if (record?.workspace !== place.workspace) return;
  const isMeant = (tag: ImageTag): boolean => tag.name === place.tag && tag.digest === digest;
  await store.resources.update(place.workspace, record.uid, (current) => ({
    spec: {
      ...current.spec,
      tags: tagsOf(current).map((tag) => (isMeant(tag) ? { ...tag, signedBy: fingerprint } : tag)),
    },
  }));
}
