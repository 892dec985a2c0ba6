/** `berth image pull`, `inspect`, `remove` and `prune`: images by their reference in a registry, or by their own name. */
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import { parseReference, REGISTRY_TYPE, referenceText, registryName, tagFor } from "../../contract/image-reference.ts";
import {
  imageCleanup,
  imageCreate,
  imageDelete,
  imageGet,
  imageList,
  imageTagDelete,
} from "../../kinds/image/operations.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { connect } from "./call-input.ts";
import { print } from "./show.ts";

interface Place {
  resourceType: string;
  imageName: string;
  tagName: string;
}

const LOOK_MS = 1000;
/** Longest wait: a large image over a slow connection. */
const PATIENCE_MS = 2 * 60 * 60_000;

export async function pullImage(call: Invocation): Promise<undefined> {
  const { args, options, context } = call;
  const reference = parseReference(text(args[0]) ?? "");
  if (!reference) throw new UsageError(`${text(args[0])} is not the name of an image.`, "berth image pull python:3.12");
  const [name = registryName(reference), tag = tagFor(reference), ...more] = text(args[1])?.split(":") ?? [];
  if (name === "" || more.length > 0) throw new UsageError("an image is called NAME or NAME:TAG.");
  const type = args[1] === undefined ? REGISTRY_TYPE : (text(options.type) ?? "sandbox");
  const client = connect(call);
  const body = { name, resourceType: type, image: referenceText(reference), tag };
  await client.call(imageCreate, { body });
  const place = { resourceType: type, imageName: name };
  const told = new Set<string>();
  for (const endsAt = Date.now() + PATIENCE_MS; Date.now() < endsAt; await pause(LOOK_MS)) {
    const image = await client.call(imageGet, { params: place });
    const { status, events = [] } = image.metadata;
    const asked = events.findLastIndex(({ message = "" }) => message.includes(" asked for "));
    for (const { type: kind, time, message = "" } of events.slice(asked + 1)) {
      // The reason of a failure is told once, as the command's error.
      if (kind === "failed") continue;
      if (!told.has(time + message)) context.note(message);
      told.add(time + message);
    }
    if (status === "FAILED") {
      const isVoid = image.spec.tags.some((each) => each.name === tag && each.status === "FAILED");
      // A tag that may not be removed stays in the list as FAILED.
      if (isVoid) await removeTag(client, { ...place, tagName: tag }).catch(() => {});
      throw new ApiError({ status: 422, code: "unprocessable", message: events.at(-1)?.message ?? "The pull failed." });
    }
    if (status !== "DEPLOYING") return print(call, null, "pretty", image);
  }
  throw new ApiError({
    status: 504,
    code: "timeout",
    message: "The pull goes on; look again with `berth image list`.",
  });
}

export async function inspectImage(call: Invocation): Promise<undefined> {
  const { tagName: _, ...params } = await placeOf(call);
  return print(call, null, "pretty", await connect(call).call(imageGet, { params }));
}

export async function removeImage(call: Invocation): Promise<undefined> {
  return print(call, null, "pretty", await removeTag(connect(call), await placeOf(call)));
}

/** With its last tag an image goes. */
async function removeTag(client: Client, { tagName, ...params }: Place): Promise<unknown> {
  const { spec } = await client.call(imageGet, { params });
  const isLast = spec.tags.every(({ name }) => name === tagName);
  return isLast
    ? client.call(imageDelete, { params })
    : client.call(imageTagDelete, { params: { ...params, tagName } });
}

export async function pruneImages(call: Invocation): Promise<undefined> {
  const client = connect(call);
  if (call.options.yes !== true) await confirmPrune(client, call);
  return print(call, null, "pretty", await client.call(imageCleanup, {}));
}

/** What will be gone is named, and goes only when somebody says so: at a terminal, or with --yes. */
async function confirmPrune(client: Client, { context }: Invocation): Promise<void> {
  const { images } = await client.call(imageCleanup, { query: { dryRun: true } });
  for (const name of images) context.note(name);
  if (images.length === 0) return;
  const answer = context.canAsk ? await context.ask("Delete these images? [y/N] ") : null;
  if (!/^\s*y(es)?\s*$/i.test(answer ?? ""))
    throw new UsageError("nothing was deleted.", "`berth image prune --yes` deletes them without asking");
}

const TAGS_SHOWN = 5;

/** `TYPE/NAME:TAG` of an image that has a name of its own; otherwise the image that was pulled by this reference. */
async function placeOf(call: Invocation): Promise<Place> {
  const word = text(call.args[0]) ?? "";
  const images = await connect(call).call(imageList);
  const reference = parseReference(word);
  const otherTags: string[] = [];
  for (const { metadata, spec } of images)
    for (const { name: tagName, image } of spec.tags) {
      const { resourceType, name: imageName } = metadata;
      const names = [`${resourceType}/${imageName}`, ...(resourceType === REGISTRY_TYPE ? [] : [imageName])];
      const isNamed = names.some((each) => word === `${each}:${tagName}` || (word === each && tagName === "latest"));
      const isPulled = reference !== null && resourceType === REGISTRY_TYPE && image === referenceText(reference);
      if (isNamed || isPulled) return { resourceType, imageName, tagName };
      if (names.some((each) => word === each || word.startsWith(`${each}:`)))
        otherTags.push(`${resourceType}/${imageName}:${tagName}`);
    }
  const hint =
    otherTags.length === 0 ? "See berth image list." : `There is ${otherTags.slice(0, TAGS_SHOWN).join(", ")}.`;
  throw new ApiError({ status: 404, code: "not_found", message: `There is no image '${word}'. ${hint}` });
}
