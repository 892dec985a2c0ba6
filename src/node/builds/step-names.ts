/**
 * Names of images that builds make. A step's image is found again by everything that its files depend on: the files
 * below, the instruction with its variables, the contents that it copies. The workspace is part of that, so that nobody
 * learns from the speed of a build what others have built, or gets files that a secret of theirs fetched.
 */
import { createHash } from "node:crypto";

/** Driver names of the images of steps and of finished builds. A reference of a client may not use these prefixes. */
export const STEP_PREFIX = "step/";
export const BUILT_PREFIX = "built/";

/** Increase it when steps do their work differently, so that old results are not used again. */
const LAYOUT = 1;

/** `owner`: the workspace, together with something that no later workspace of the same name has. */
export const stepKey = (owner: string, below: string, step: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify([LAYOUT, owner, below, step]))
    .digest("hex");

/** The first part tells steps of different workspaces apart without naming the workspace. */
export const stepName = (owner: string, key: string): string => `${STEP_PREFIX}${ownerWord(owner)}-${key}`;

/** The image that a running step stands on. */
export const stepBase = (uid: string): string => `${STEP_PREFIX}${uid}`;

export const ownerWord = (owner: string): string => createHash("sha256").update(owner).digest("hex").slice(0, 16);

/** A folder that `RUN --mount=type=cache` keeps from build to build. */
export const cacheDrive = (owner: string, id: string): string =>
  `build-cache-${createHash("sha256")
    .update(`${ownerWord(owner)}/${id}`)
    .digest("hex")
    .slice(0, 32)}`;
