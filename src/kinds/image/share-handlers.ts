/**
 * Sharing images. A share within an account takes effect at once; another account must accept the offer. The borrower
 * sees later changes of the image, cannot share it further, and cannot change it.
 */
import type { z } from "zod";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { DAY_MS, toIso } from "../../lib/time/clock.ts";
import type { Transaction } from "../../store/database/database.ts";
import type { Workspace } from "../../store/people/workspaces.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { ShareOffer } from "../../store/resources/shares.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { findOwn } from "./handlers.ts";
import { findImage, imageToWire, slotOf, typeOf } from "./images.ts";
import { placeOfImage, type RepositoryPlace } from "./registry/place.ts";
import {
  imageShare,
  imageShares,
  imageUnshare,
  pendingImageShareAccept,
  pendingImageShareDecline,
  pendingImageShareList,
  type pendingShape,
} from "./share-operations.ts";

const OFFER_MS = 7 * DAY_MS;
/** Open offers of one image. */
const OFFERS_MAX = 100;

export const imageShareHandlers: readonly Implementation[] = [
  implement(imageShare, async (call, deps) => {
    const { store, clock } = deps;
    const own = workspaceOf(call);
    const image = await findOwn(call, deps);
    const target = await borrowerOf(call.body, own, deps);
    const { targetWorkspace: named, targetAccountId: asked = "" } = call.body;
    const already = new PlatformError("conflict", `image '${image.name}' is shared with '${named}' already.`);
    if ((await store.shares.listOf(image.uid)).some((share) => share.target === target.key)) throw already;
    const by = call.caller.displayName;
    if (target.isOwn) {
      if (await isTaken(image, named, deps)) throw nameTaken(image, named);
      if (!(await store.write((tx) => store.shares.add(tx, image, named, by)))) throw already;
      return imageToWire(image, own.name, false);
    }
    if ((await store.shares.listOffers("uid", image.uid)).length >= OFFERS_MAX)
      throw new PlatformError("conflict", `image '${image.name}' has ${OFFERS_MAX} open offers. Withdraw some first.`);
    const offer = await store.write((tx) => store.shares.offer(tx, image, target.key, by, clock.now() + OFFER_MS));
    if (!offer) throw new PlatformError("conflict", `image '${image.name}' is offered to '${named}' already.`);
    call.setStatus(202);
    return offerToWire(offer, image, own, asked);
  }),

  implement(imageShares, async (call, deps) => {
    const { store, clock } = deps;
    const image = await findOwn(call, deps);
    const [shares, offers] = await Promise.all([
      store.shares.listOf(image.uid),
      store.shares.listOffers("uid", image.uid),
    ]);
    const active = shares.map(({ target }) => ({ target, status: "active" as const, id: null }));
    const pending = offers
      .filter((offer) => offer.expires_at > clock.now())
      .map(({ target, id }) => ({ target, status: "pending" as const, id }));
    const all = await Promise.all(
      [...active, ...pending].map(async ({ target, status, id }) => {
        if (id !== null) return [{ workspace: nameIn(target), accountId: "", status, pendingShareId: id }];
        const workspace = await store.workspaces.get(target);
        const shown = { workspaceDisplayName: workspace?.displayName ?? "" };
        return workspace ? [{ workspace: target, accountId: workspace.accountId, status, ...shown }] : [];
      }),
    );
    return all.flat();
  }),

  implement(imageUnshare, async (call, deps) => {
    const image = await findOwn(call, deps);
    const target = call.params.targetWorkspace ?? "";
    const offers = await deps.store.shares.listOffers("uid", image.uid);
    const keys = offers.map((offer) => offer.target).filter((key) => nameIn(key) === target);
    const removed = await Promise.all(
      [...new Set([target, ...keys])].map((key) => deps.store.shares.remove(image.uid, key)),
    );
    if (!removed.includes(true)) throw notFound(`A share with '${target}'`);
    return imageToWire(image, workspaceOf(call).name, false);
  }),

  implement(pendingImageShareList, async (call, deps) => {
    const own = workspaceOf(call);
    const incoming = call.query.direction !== "outgoing";
    const offers = await deps.store.shares.listOffers(incoming ? "target" : "workspace", own.name);
    const open = offers.filter((offer) => offer.expires_at > deps.clock.now() && (!incoming || isFor(offer, own)));
    return (await Promise.all(open.map((offer) => render(offer, incoming, deps)))).flat();
  }),

  implement(pendingImageShareAccept, async (call, deps) => {
    const { store, clock } = deps;
    const { name: workspace } = workspaceOf(call);
    const offer = await findOffer(call, deps);
    const image = await store.resources.getAcrossWorkspaces(offer.uid);
    if (!image || offer.expires_at <= clock.now())
      throw new PlatformError("gone", "This offer has expired, or its image is gone. Ask for a new one.");
    const other = await findImage(workspace, typeOf(image), image.name, deps);
    if (other && !call.query.force) throw nameTaken(image, workspace);
    const place = other && (await placeOfImage(other, deps));
    const accepted = await store.write(async (tx) => {
      if (other && place) await giveWay(tx, other, place, workspace, deps);
      return store.shares.accept(tx, offer, call.caller.displayName);
    });
    if (!accepted) throw new PlatformError("gone", "This offer has been withdrawn.");
    return imageToWire(image, workspace, false);
  }),

  implement(pendingImageShareDecline, async (call, deps) => {
    await deps.store.shares.removeOffer((await findOffer(call, deps)).id);
    return null;
  }),
];

/**
 * Outside of the account nobody is told whether a workspace exists or whose it is: an offer to one that does not exist
 * is kept and shown like any other.
 */
async function borrowerOf(
  { targetWorkspace: name, targetAccountId: asked }: { targetWorkspace: string; targetAccountId?: string | undefined },
  own: Workspace,
  { store }: Platform,
): Promise<{ isOwn: boolean; key: string }> {
  if (name === own.name) throw new PlatformError("bad_request", "targetWorkspace: this is the image's own workspace.");
  const target = await store.workspaces.get(name);
  const isOwn = target?.accountId === own.accountId;
  if (asked === own.accountId && !isOwn) throw notFound(`Workspace '${name}'`);
  if (asked === undefined || asked === own.accountId) return { isOwn, key: name };
  return { isOwn: false, key: target?.accountId === asked ? name : nobody(name, asked) };
}

/** The borrower of an offer that names another account than the workspace's: no workspace has such a name. */
const nobody = (name: string, accountId: string): string => `${name}@${accountId}`;

const nameIn = (key: string): string => key.replace(/@.*/, "");

/** The name may have belonged to another workspace, or to none, when the offer was made. */
const isFor = ({ target, created_at }: ShareOffer, { name, createdAt }: Workspace): boolean =>
  target === name && created_at >= createdAt;

/** Whether the target workspace already has an image of this name, its own or a borrowed one. */
async function isTaken(image: Resource, workspace: string, deps: Platform): Promise<boolean> {
  const other = await findImage(workspace, typeOf(image), image.name, deps);
  return other !== null && other.uid !== image.uid;
}

const nameTaken = (image: Resource, workspace: string): PlatformError =>
  new PlatformError(
    "conflict",
    `Workspace '${workspace}' has an image '${slotOf(typeOf(image), image.name)}' already.`,
  );

/** An offer to another workspace is answered with 404, as if it did not exist. */
async function findOffer(
  call: Pick<Call, "workspace" | "operation" | "params">,
  { store }: Platform,
): Promise<ShareOffer> {
  const id = call.params.pendingShareId ?? "";
  const offer = await store.shares.getOffer(id);
  if (!offer || !isFor(offer, workspaceOf(call))) throw notFound(`Pending share '${id}'`);
  return offer;
}

/** Frees the name: deletes the workspace's own image, or ends the share of a borrowed one. */
async function giveWay(
  tx: Transaction,
  other: Resource,
  { key }: Pick<RepositoryPlace, "key">,
  workspace: string,
  { store }: Platform,
): Promise<void> {
  if (other.workspace !== workspace) {
    await store.shares.removeIn(tx, other.uid, workspace);
    return;
  }
  if ((await store.shares.listOf(other.uid)).length > 0)
    throw new PlatformError("conflict", `Your own image '${other.name}' is shared with others. Take it back first.`);
  await store.pushedImages.removeRepository(tx, key);
  await store.shares.removeOffersOf(tx, other.uid);
  await store.resources.remove(tx, workspace, other.uid);
}

const offerToWire = (
  offer: ShareOffer,
  image: Resource,
  source: Workspace,
  targetAccountId: string,
): z.input<typeof pendingShape> => ({
  id: offer.id,
  imageName: image.name,
  resourceType: typeOf(image),
  sourceWorkspace: source.name,
  sourceAccountId: source.accountId,
  targetWorkspace: nameIn(offer.target),
  targetAccountId,
  sharedBy: offer.created_by,
  createdAt: toIso(offer.created_at),
  updatedAt: toIso(offer.created_at),
  createdBy: offer.created_by,
  updatedBy: offer.created_by,
  expiresAt: toIso(offer.expires_at),
});

/** Shows each side only what it needs to decide about the offer. */
async function render(offer: ShareOffer, incoming: boolean, deps: Platform) {
  const { store } = deps;
  const [image, source, target] = await Promise.all([
    store.resources.getAcrossWorkspaces(offer.uid),
    store.workspaces.get(offer.workspace),
    store.workspaces.get(offer.target),
  ]);
  if (!image || !source || (incoming && !target)) return [];
  const theirs =
    incoming && target
      ? { targetWorkspaceDisplayName: target.displayName, hasConflict: await isTaken(image, target.name, deps) }
      : {};
  const account = incoming && target ? target.accountId : "";
  return [
    {
      ...offerToWire(offer, image, source, account),
      sharedByEmail: offer.created_by,
      sourceWorkspaceDisplayName: source.displayName,
      ...theirs,
    },
  ];
}
