/** Owners, modes and times that files of a drive get through a mount of another machine. */
import type { BigIntStats } from "node:fs";
import { FileError } from "../errors.ts";
import type { Asks, NewFile } from "../wire.ts";
import * as calls from "./calls.ts";

const PERMISSIONS = 0o777;
const STICKY = 0o1000;
const SET_GROUP = 0o2000;
const SET_IDS = 0o6000;
/** Bits of a mode that are set as asked for; see refuseSetIds. */
export const KEPT_BITS = PERMISSIONS | STICKY | SET_GROUP;
/** The kernel's word for an id that is not told. */
const NO_ID = 0xffff_ffff;

/** A program that runs with the rights of its owner is not made through a mount of another machine. */
export function refuseSetIds(mode: number, isFolder: boolean): void {
  if ((mode & (isFolder ? 0o4000 : SET_IDS)) !== 0) throw new FileError("EPERM");
}

export function modeOf({ mode }: NewFile, isFolder: boolean): number {
  refuseSetIds(mode, isFolder);
  return mode & (PERMISSIONS | (isFolder ? STICKY | SET_GROUP : 0));
}

/** In a folder with the set-group bit a new entry has the group of the folder. */
export async function ownerIn(folderFd: number, { uid, gid }: NewFile): Promise<{ uid: number; gid: number }> {
  const folder = await calls.statFd(folderFd);
  const keepsGroup = (Number(folder.mode) & SET_GROUP) !== 0;
  return {
    uid: uid === NO_ID ? Number(folder.uid) : uid,
    gid: gid === NO_ID || keepsGroup ? Number(folder.gid) : gid,
  };
}

export function timesOf({ atime, mtime }: Asks["change"]["changes"], before: BigIntStats): [number, number] | null {
  if (atime === undefined && mtime === undefined) return null;
  const of = (time: number | "now" | undefined, otherwise: bigint): number =>
    time === "now" ? Date.now() / 1000 : (time ?? Number(otherwise) / 1000);
  return [of(atime, before.atimeMs), of(mtime, before.mtimeMs)];
}
