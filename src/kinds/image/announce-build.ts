/** `POST /images?upload=true`: records what is to be built, and tells the client where to send the archive. */
import type { z } from "zod";
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { need } from "../../node/capabilities/need.ts";
import { type Call, type Platform, workspaceOf } from "../port.ts";
import { announceUpload, ticketFor } from "../uploads.ts";
import { secretsKey, type TagBuild, withBuild } from "./build.ts";
import { findImage, recordTag, tagsOf } from "./images.ts";
import type { imageCreate } from "./operations.ts";

type Body = z.output<NonNullable<typeof imageCreate.body>>;

const TAG_DEFAULT = "latest";

/** The name that the client gives the image. */
export function ownName({ name, resourceType }: Pick<Body, "name" | "resourceType">) {
  if (name === undefined) throw invalidField("name", "is required");
  if (resourceType === undefined) throw invalidField("resourceType", "is required");
  return { name, resourceType };
}

export async function announceBuild(
  call: Call<Record<string, unknown>, Body>,
  deps: Platform,
): Promise<z.input<typeof imageCreate.response>> {
  const { image, tag = TAG_DEFAULT, dockerConfig, build = {} } = call.body;
  const { name, resourceType } = ownName(call.body);
  await need(deps.here.driver, "building");
  if (image !== undefined)
    throw new PlatformError(
      "bad_request",
      "image: is not sent together with upload=true; the Dockerfile names what it stands on.",
    );
  const { here, store, clock, settings } = deps;
  const { name: workspace } = workspaceOf(call);
  here.builder.requireTurn(workspace);
  const actor = call.caller.displayName;
  const found = await findImage(workspace, resourceType, name, deps);
  // What was built before stays usable until the new build is done.
  const known = found?.workspace === workspace ? tagsOf(found).find((each) => each.name === tag) : undefined;
  const { image: _, ...before } = known ?? {};
  const recorded = await recordTag(
    {
      ...{ ...before, workspace, resourceType, name, tag, building: true },
      ...(dockerConfig === undefined ? {} : { dockerConfig }),
      status: "UPLOADING",
      event: { type: "uploading", message: `${actor} asked for a build of tag '${tag}': waits for the archive.` },
      actor,
    },
    deps,
  );
  const { dockerfile = "Dockerfile", args = {}, target, secrets = {}, noCache = false } = build;
  const planned: TagBuild = {
    ...{ dockerfile, args, noCache, node: settings.nodeId },
    ...(target === undefined ? {} : { target }),
  };
  const waiting = await store.resources.update(workspace, recorded.uid, (current) => ({
    state: { ...withBuild(current.state, tag, planned), upload: ticketFor(tag, clock.now()) },
    secrets: { ...store.resources.secretsOf(current), [secretsKey(tag)]: JSON.stringify(secrets) },
  }));
  if (!waiting) throw new PlatformError("conflict", "The image was deleted meanwhile.");
  announceUpload(call, waiting, deps);
  const message =
    "Send the archive to the address in X-Service-Upload-Url. The status becomes BUILDING, then DEPLOYED, or FAILED with the reason.";
  return { name, resourceType, message, build: true };
}
