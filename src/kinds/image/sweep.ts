/** Periodic work on images: removing those that no tag names, and taking up pulls that a server left. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/time/clock.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { resumePulls } from "./background-pull.ts";
import { resumeBuilds } from "./build.ts";
import { sweepPushed } from "./registry/sweep.ts";
import { allImages, removeUnnamed, type SweepDeps } from "./release.ts";

/** A step of a build that no build has used for this long is removed. */
const STEP_UNUSED_MAX_MS = 7 * DAY_MS;
const SWEEP_MS = 10 * MINUTE_MS;
/** Age before the sweep removes an image without a tag: a fresh image may not have been recorded yet. */
const UNNAMED_MAX_MS = 10 * MINUTE_MS;
/** How soon a pull is taken up again after the server that did it has ended. */
const RESUME_MS = MINUTE_MS;

export const imageTasks = (deps: Deps): KindTask[] => [
  { name: `sweep-images/${deps.settings.nodeId}`, everyMs: SWEEP_MS, run: (signal) => sweepImages(deps, signal) },
  {
    name: `resume-image-builds/${deps.settings.nodeId}`,
    everyMs: RESUME_MS,
    run: (signal) => resumeBuilds(allImages(deps, signal), deps),
  },
  { name: "sweep-pushed-images", everyMs: HOUR_MS, run: (signal) => sweepPushed(deps, signal) },
  { name: "resume-image-pulls", everyMs: RESUME_MS, run: (signal) => resumePulls(allImages(deps, signal), deps) },
];

/** The driver keeps images that a workload still runs from. */
export async function sweepImages(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const olderThanMs = deps.clock.now() - UNNAMED_MAX_MS;
  await removeUnnamed(deps, signal, ({ createdAt }) => Date.parse(createdAt) < olderThanMs);
  await deps.puller?.sweep(deps.clock.now());
  await deps.blobUploads?.sweep(deps.clock.now());
  const isShort = deps.disk !== undefined && deps.disk.shortage() !== null;
  await deps.builder?.sweep(
    ({ createdAt }) => isShort || Date.parse(createdAt) < deps.clock.now() - STEP_UNUSED_MAX_MS,
  );
}
