/**
 * Images uploaded as files. The driver stores each under its own name; a tag of the image record refers to that name.
 */

import { rm } from "node:fs/promises";
import type { z } from "zod";
import { PlatformError } from "../../contract/errors.ts";
import * as fields from "../../contract/fields.ts";
import { randomWord } from "../../lib/ids.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Call, type Deps, workspaceOf } from "../port.ts";
import { recordTag } from "./images.ts";
import { resourceType, tagName } from "./operations.ts";
import { LOADED_PREFIX } from "./resolve.ts";
import { withManifest } from "./with-manifest.ts";

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
    const image = await images.load(path, loaded);
    const actor = call.caller.displayName;
    const recorded = await withManifest({ ...image, name: loaded }, deps, (content) => {
      const message = `Tag '${place.tag}' was loaded from a file by ${actor}: ${content.digest}.`;
      return recordTag({ ...place, ...content, status: "DEPLOYED", event: { type: "loaded", message }, actor }, deps);
    });
    if (images.addManifest) await images.remove(loaded);
    return recorded;
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
