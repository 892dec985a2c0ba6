/** Brings the image of a workload onto this machine, from its registry where that is needed, and records it. */

import { PlatformError } from "../../contract/errors.ts";
import { type Reference, referenceText, repositoryText } from "../../contract/image-reference.ts";
import { bytesText } from "../../lib/bytes-text.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { type Progress, type Pulled, type PullRequest, withoutNear } from "../../node/images/puller.ts";
import { PullRefused } from "../../registry/problem.ts";
import type { Deps } from "../port.ts";
import { engineImage } from "./engine-image.ts";
import type { ImageRequest, StartImage } from "./image-request.ts";
import { findImage as findRecord, recordTag, tagsOf } from "./images.ts";
import { pullCredentials } from "./pull-credentials.ts";
import { ownRequest, ownSource } from "./registry/own-source.ts";
import { placeOfImage } from "./registry/place.ts";
import { releaseImages } from "./release.ts";
import {
  type FoundImage,
  isOwn,
  localCopy,
  type RegistryImage,
  type Resolved,
  resolveReference,
  type User,
} from "./resolve.ts";
import { noteSigned, refuseUnsigned, requireSigned } from "./signatures.ts";

export type { ImageRequest, StartImage } from "./image-request.ts";

type PullDeps = Pick<Deps, "store" | "driver" | "settings" | "puller" | "blobs" | "clock" | "log" | "partOfPeer">;

/** Pauses between two messages about one pull. */
const TELL_EVERY_MS = 5 * SECOND_MS;
/** Who pulls, in events: no person asked for this very pull. */
const PLATFORM = "platform";

/** Resolves the image of a workload that is about to start, and pulls it where needed; throws when there is none. */
export async function startImage(
  reference: string,
  user: User,
  deps: PullDeps,
  request: ImageRequest = {},
): Promise<StartImage> {
  const resolved = await resolveReference(reference, user, deps);
  if (resolved === null) throw new PlatformError("bad_request", `There is no image ${reference}.`);
  if ("found" in resolved)
    return (await engineImage(reference, user, deps, request)) ?? localImage(reference, resolved.found, user, deps);
  const { remote } = resolved;
  const isOurs = remote.known !== null && isOwn(remote.known);
  const pulledByEngine = await engineImage(nameForEngine(remote), user, deps, request, isOurs);
  if (pulledByEngine) return pulledByEngine;
  const here = await currentCopy(remote, user, deps, request);
  if (here) {
    await checkSignature(remote, { digest: here.digest, named: remote.known?.named }, user, deps, request);
    return { ...here, source: sourceText(remote.reference, here.digest), isNew: false };
  }
  const { message, named, ...pulled } = await pullRecorded(remote, user.workspace, deps, request);
  request.tell?.(message);
  await checkSignature(remote, { digest: pulled.digest, named }, user, deps, request);
  return { ...pulled, source: sourceText(remote.reference, pulled.digest), isNew: true };
}

/** The name by which an engine outside of this server finds the image; a recorded tag means the content that it has now. */
const nameForEngine = ({ reference, known }: RegistryImage): string =>
  known ? `${repositoryText(reference)}@${known.named ?? known.digest}` : referenceText(reference);

/** An image of this machine that comes from no registry: the platform's own, a file, a build. */
async function localImage(
  reference: string,
  found: FoundImage,
  { workspace }: User,
  deps: PullDeps,
): Promise<StartImage> {
  if (found.changedAt !== null) await refuseUnsigned(reference, workspace, deps);
  return { ...found, ...(await describedImage(reference, found.loaded, deps)), isNew: false };
}

/** What the events of a workload say about an image that comes from no registry. */
export async function describedImage(
  reference: string,
  loaded: string,
  { driver }: Pick<Deps, "driver">,
): Promise<Pick<StartImage, "source" | "digest">> {
  const digest = (await (await driver.capability("images"))?.find(loaded))?.digest;
  return digest === undefined ? {} : { source: `${reference}@${digest}`, digest };
}

/** Refuses an image without the signature that the workspace asks for. */
async function checkSignature(
  remote: RegistryImage,
  content: Pick<Pulled, "digest"> & { named?: string | undefined },
  { workspace }: User,
  deps: PullDeps,
  { dockerConfig, signal = new AbortController().signal }: ImageRequest,
): Promise<void> {
  const image = { text: referenceText(remote.reference), ...content, known: remote.known };
  const request = (): Promise<PullRequest> => requestFor(remote, workspace, dockerConfig, deps);
  const signedBy = await requireSigned(image, workspace, request, signal, deps);
  if (signedBy === null || signedBy === remote.known?.signedBy) return;
  await noteSigned(remote.place, content.digest, signedBy, deps);
}

const sourceText = (reference: Reference, digest: string): string =>
  reference.digest === undefined ? `${referenceText(reference)}@${digest}` : referenceText(reference);

/** The copy on this machine, where the policy lets it be used. */
async function currentCopy(
  remote: RegistryImage,
  { workspace }: User,
  deps: PullDeps,
  { policy = "IfNotPresent", dockerConfig, signal = new AbortController().signal }: ImageRequest,
): Promise<(FoundImage & { digest: string }) | null> {
  const local = await localCopy(remote, deps);
  const copy = local?.digest === undefined ? null : { ...local, digest: local.digest };
  if (policy === "Never" && !copy)
    throw new PlatformError(
      "unprocessable",
      `The image ${referenceText(remote.reference)} is not on this machine, and imagePullPolicy is Never. Pull it first: berth image pull ${referenceText(remote.reference)}`,
    );
  if (policy !== "Always" || !copy) return copy;
  const request = await requestFor(remote, workspace, dockerConfig, deps);
  return (await deps.puller.named(request, signal)) === remote.known?.named ? copy : null;
}

async function requestFor(
  { reference, record, known }: RegistryImage,
  workspace: string,
  dockerConfig: unknown,
  deps: PullDeps,
): Promise<PullRequest> {
  if (record && known && isOwn(known)) return ownRequest(await placeOfImage(record, deps), reference, workspace, deps);
  const own = record ? deps.store.resources.secretsOf(record).dockerConfig : undefined;
  // An image that is shared is pulled with the credentials of the workspace that shares it.
  const credentials = await pullCredentials(record?.workspace ?? workspace, dockerConfig ?? own, deps);
  // Another server may have what the tag is known to mean: that is nearer than the registry.
  const near = record && known ? { near: ownSource(await placeOfImage(record, deps), deps) } : {};
  return { workspace, reference, credentials, ...near };
}

/** Refuses an image that could not be pulled, or lacks the signature that the workspace asks for. */
export async function requireUsable(
  reference: string,
  resolved: Resolved,
  user: User,
  deps: PullDeps,
  request: ImageRequest,
): Promise<void> {
  if ("found" in resolved) {
    if (resolved.found.changedAt !== null) await refuseUnsigned(reference, user.workspace, deps);
    return;
  }
  const { remote } = resolved;
  const signal = AbortSignal.timeout(LOOK_MAX_MS);
  const here = await currentCopy(remote, user, deps, request);
  const content = here
    ? { digest: here.digest, named: remote.known?.named }
    : await deps.puller.look(await requestFor(remote, user.workspace, request.dockerConfig, deps), signal);
  await checkSignature(remote, content, user, deps, { ...request, signal });
}

/** A create waits this long for a registry to say whether it has the image. */
const LOOK_MAX_MS = 20 * SECOND_MS;

interface Recorded {
  loaded: string;
  digest: string;
  /** Digest that the reference led to. */
  named: string;
  /** When the tag got this content. */
  changedAt: string;
  /** What the tag's event says. */
  message: string;
}

/** Pulls the image and records it under its tag. */
export async function pullRecorded(
  remote: RegistryImage,
  workspace: string,
  deps: PullDeps,
  { policy, dockerConfig, signal = new AbortController().signal, tell = () => {} }: ImageRequest = {},
): Promise<Recorded> {
  const { known } = remote;
  const request = await requestFor(remote, workspace, dockerConfig, deps);
  const text = referenceText(remote.reference);
  const startedAt = performance.now();
  const options = { signal, onProgress: teller(text, tell) };
  const keep = async (pulled: Pulled): Promise<Recorded> => {
    const seconds = ((performance.now() - startedAt) / SECOND_MS).toFixed(1);
    const message = `Pulled ${text}@${pulled.digest}: ${bytesText(pulled.downloadedBytes)} in ${seconds} s.`;
    const changedAt = await keepTag(remote, pulled, message, deps);
    deps.log.info({ image: text, digest: pulled.digest, bytes: pulled.downloadedBytes }, "an image was pulled");
    return { loaded: pulled.name, digest: pulled.digest, named: pulled.named, changedAt, message };
  };
  // A tag that is known but not on this machine means the same content here as on the others.
  if (policy !== "Always" && known?.digest !== undefined && remote.reference.digest === undefined) {
    const same = { ...request, reference: { ...request.reference, digest: known.digest } };
    try {
      return await deps.puller.pull(same, options, keep);
    } catch (error) {
      if (!(error instanceof PullRefused) || error.reason !== "not_found") throw error;
    }
  }
  return deps.puller.pull(policy === "Always" ? withoutNear(request) : request, options, keep);
}

/**
 * A tag that is pulled again and has the same content stays as it is: its age decides who gets secrets. Returns when the
 * tag got this content, whatever becomes of the tag afterwards.
 */
async function keepTag(
  { place, reference, known }: RegistryImage,
  pulled: Pulled,
  message: string,
  deps: PullDeps,
): Promise<string> {
  const { name: loaded, digest, named, sizeBytes } = pulled;
  const record = await findRecord(place.workspace, place.resourceType, place.name, deps);
  const before =
    record && record.workspace === place.workspace && tagsOf(record).find(({ name }) => name === place.tag);
  if (before && before.digest === digest && before.loaded === loaded && !before.awaited) return before.updatedAt;
  const recorded = await recordTag(
    {
      ...(known?.pushed ? { pushed: true } : known && isOwn(known) ? {} : { image: referenceText(reference) }),
      ...{ ...place, sizeBytes, loaded, digest, named, status: "DEPLOYED" },
      event: { type: "pulled", message },
      actor: PLATFORM,
    },
    deps,
  );
  if (before && before.loaded !== loaded) await releaseImages([before], deps);
  const kept = tagsOf(recorded).find(({ name }) => name === place.tag);
  if (!kept) throw new Error(`the tag ${place.tag} is missing from the record that was written for it`);
  return kept.updatedAt;
}

/** Turns the progress of a pull into a message now and then. */
function teller(text: string, tell: (message: string) => void): (progress: Progress) => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  return ({ layers, layersDone, bytes, bytesDone }) => {
    if (performance.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = performance.now();
    tell(`Pulling ${text}: ${bytesText(bytesDone)} of ${bytesText(bytes)}, ${layersDone} of ${layers} layers.`);
  };
}

/** Records the messages of a pull as events of a resource, one after the other. */
export function eventTeller(record: (message: string) => Promise<unknown>): {
  tell: (message: string) => void;
  told: () => Promise<unknown>;
} {
  let last: Promise<unknown> = Promise.resolve();
  return {
    tell: (message) => {
      // A lost message does not fail the pull.
      last = last.then(() => record(message)).catch(() => {});
    },
    told: () => last,
  };
}

/** Events about one pull in a record. */
export const PULLING = "pulling";

export const pullingEvent = (message: string): { event: { type: string; message: string } } => ({
  event: { type: PULLING, message },
});
