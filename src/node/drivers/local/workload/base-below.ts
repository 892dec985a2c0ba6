/**
 * The base image below the files of a sandbox that starts again. Its lower layers are the machine's own programs: after
 * an upgrade of the machine they are others, and the private folders that belong to them (`/etc` with the loader's cache,
 * Node) have to go with them. Files that the sandbox wrote hide those below, as before; all others are the machine's of
 * today. An overlay allows lower layers that changed while it was not mounted, because it neither follows redirects nor
 * keeps an index (`launch-program.ts`).
 */
import { existsSync } from "node:fs";
import { baseFolder } from "../images/base-image.ts";
import type { RootPart } from "./launch-program.ts";

/** The parts themselves when the base below them is the same, is no base image, or was laid out otherwise. */
export function onBase(parts: RootPart[], before: string, now: string): RootPart[] {
  const [from, to] = [baseFolder(before), baseFolder(now)];
  if (from === to) return parts;
  const moved = parts.map(({ at, lowers }) => ({ at, lowers: lowers.map((lower) => moveTo(lower, from, to)) }));
  const lowers = moved.flatMap((part) => part.lowers);
  const isMoved = lowers.some((lower) => lower.split("/").includes(to));
  return isMoved && lowers.every((lower) => existsSync(lower)) ? moved : parts;
}

const moveTo = (path: string, from: string, to: string): string =>
  path
    .split("/")
    .map((name) => (name === from ? to : name))
    .join("/");
