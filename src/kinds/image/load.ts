/**
 * Images uploaded as files. The driver stores each under its own name; a tag of the image record refers to that name.
 */

import { rm } from "node:fs/promises";
import type { z } from "zod";
import { PlatformError } from "../../contract/errors.ts";
import * as fields from "../../contract/fields.ts";
import { randomWord } from "../../lib/ids.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { KindTask } from "../kind-task.ts";
import { type Call, type Deps, workspaceOf } from "../port.ts";
import { IMAGE, recordTag, tagsOf } from "./images.ts";
import { resourceType, tagName } from "./operations.ts";
import { LOADED_PREFIX } from "./resolve.ts";

const SWEEP_MS = 10 * MINUTE_MS;
/** Age before the sweep removes an image without a tag: a fresh image may not have been recorded yet. */
const UNNAMED_MAX_MS = 10 * MINUTE_MS;
const PAGE = 500;

export async function imageFromArchive(call: Call, deps: Deps): Promise<Resource> {
  const { blobs, driver, settings } = deps;
  const place = {
    workspace: workspaceOf(call).name,
    resourceType: checked("resourceType", resourceType, call),
    name: checked("imageName", fields.name, call),
    tag: checked("tagName", tagName, call),
  };
  if (!call.stream) throw new Error("an archive came without its bytes");
  const images = await need(driver, "images");
  const loaded = `${LOADED_PREFIX}${randomWord(20)}`;
  const { path } = await blobs.receive(call.stream, settings.imageBytesMax);
  try {
    const { sizeBytes } = await images.load(path, loaded);
    const actor = call.caller.displayName;
    const event = { type: "loaded", message: `Tag '${place.tag}' was loaded from a file by ${actor}.` };
    return await recordTag({ ...place, sizeBytes, loaded, status: "DEPLOYED", event, actor }, deps);
  } catch (error) {
    await images.remove(loaded);
    throw error;
  } finally {
    await rm(path, { force: true });
  }
}

function checked(param: string, rule: z.ZodType<string>, { params }: Call): string {
  const { data, error } = rule.safeParse(params[param]);
  if (error) throw new PlatformError("invalid_parameter", `${param}: ${error.issues[0]?.message ?? "is not valid"}.`);
  return data;
}

export const imageTasks = (deps: Deps): KindTask[] => [
  { name: `sweep-images/${deps.settings.nodeId}`, everyMs: SWEEP_MS, run: (signal) => sweepImages(deps, signal) },
];

/** Removes uploaded images that no tag refers to. The driver keeps images that a workload still runs from. */
export async function sweepImages({ store, driver, clock }: Deps, signal: AbortSignal): Promise<void> {
  const images = await driver.capability("images");
  if (images === null) return;
  const old = (await images.list()).filter(
    ({ name, createdAt }) => name.startsWith(LOADED_PREFIX) && Date.parse(createdAt) < clock.now() - UNNAMED_MAX_MS,
  );
  if (old.length === 0) return;
  const named = new Set<string | undefined>();
  for (let after = ""; ; ) {
    const page = await store.resources.listAcrossWorkspaces(IMAGE, after, PAGE);
    for (const { loaded } of page.flatMap(tagsOf)) named.add(loaded);
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) break;
  }
  for (const { name } of old) {
    signal.throwIfAborted();
    if (!named.has(name.replace(/:latest$/, ""))) await images.remove(name);
  }
}
