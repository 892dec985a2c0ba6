/** Triggers of a workload: what starts it beside requests to its address. */
import { isIP } from "node:net";
import { PREVIEWS_SEGMENT, WORKLOADS } from "../../contract/addresses.ts";
import { invalidField } from "../../contract/errors.ts";
import { CLAIMS, type Link } from "../../contract/references.ts";
import { MASK } from "../../contract/secret-fields.ts";
import {
  behind,
  callbackSecretKey,
  ownPath,
  TRIGGER_SEGMENTS_MAX,
  type TriggerConfiguration,
  triggerPath,
} from "../../contract/triggers.ts";
import { randomSecret } from "../../lib/ids.ts";
import { classifyAddress } from "../../lib/network/address-class.ts";
import type { Input, PrepareContext } from "../port.ts";
import { checkCron } from "./cron.ts";
import { type WorkloadSpec, workloadSpec } from "./spec.ts";

/** Requests that one firing sends to a workload. Larger batches belong into a job. */
const REQUESTS_MAX = 100;
/** First path segments that already belong to workloads and previews. */
const TAKEN_SEGMENTS: ReadonlySet<string> = new Set([
  ...Object.values(WORKLOADS).map(({ plural }) => plural),
  PREVIEWS_SEGMENT,
]);
/** Printable ASCII, because the path becomes part of a request line. */
const REQUEST_PATH = /^[\x21-\x7e]*$/;
/** One path segment as it stands in a request, without decoding. */
const SEGMENT = /^[A-Za-z0-9._~!$&'()*+,;=:@%-]+$/;

/** A trigger as the client sent it, before id and type are set. */
type SentTrigger = NonNullable<WorkloadSpec["triggers"]>[number];

export function prepareTriggers(input: Input, kind: string, { current, deps, reveal }: PrepareContext): void {
  const { triggers } = workloadSpec(input.spec);
  if (!triggers) return;
  nameTriggers(triggers);
  const stored = current ? deps.store.resources.secretsOf(current) : {};
  for (const [index, trigger] of triggers.entries()) {
    const path = `spec.triggers[${index}].configuration`;
    const { configuration = {} } = trigger;
    trigger.type ??= configuration.schedule === undefined ? "http" : "cron";
    if (trigger.type === "cron") checkCronTrigger(path, kind, configuration);
    else checkPath(`${path}.path`, triggerPath(trigger), ownPath(kind, current?.name ?? input.metadata.name ?? ""));
    if (kind === "job" && configuration.authenticationType === "public")
      throw invalidField(`${path}.authenticationType`, "a job is started with credentials only");
    // The platform makes the secret: shown in clear text once, kept while the trigger has a callback.
    delete configuration.callbackSecret;
    if (!configuration.callbackUrl) continue;
    checkUrl(`${path}.callbackUrl`, configuration.callbackUrl, deps.settings.privateCallbacks);
    const key = callbackSecretKey(trigger.id ?? "");
    if (!Object.hasOwn(stored, key)) reveal.add(key);
    configuration.callbackSecret = Object.hasOwn(stored, key) ? MASK : randomSecret();
  }
}

/** Claims the paths of triggers within the workspace, so that a path leads to one workload. */
export function triggerClaims(input: Input, workspace: string): Link[] {
  return (workloadSpec(input.spec).triggers ?? []).flatMap((trigger, index) => {
    const path = triggerPath(trigger);
    // Paths below the workload's own address need no claim.
    if (path === "" || trigger.type === "cron" || TAKEN_SEGMENTS.has(firstSegment(path))) return [];
    const field = `spec.triggers[${index}].configuration.path`;
    return [{ field, kind: CLAIMS.triggerPath, name: `${workspace}/${path}`, exclusive: true, to: "claim" as const }];
  });
}

const firstSegment = (path: string): string => path.split("/", 1)[0] ?? "";

/** Gives every trigger a unique id; triggers without one are numbered. */
function nameTriggers(triggers: SentTrigger[]): void {
  const taken = new Set<string>();
  for (const [index, { id }] of triggers.entries()) {
    if (id === undefined) continue;
    if (taken.has(id)) throw invalidField(`spec.triggers[${index}].id`, `'${id}' is used by another trigger`);
    taken.add(id);
  }
  let number = 0;
  for (const trigger of triggers) {
    if (trigger.id !== undefined) continue;
    do number += 1;
    while (taken.has(`trigger-${number}`));
    trigger.id = `trigger-${number}`;
  }
}

function checkPath(field: string, path: string, own: string): void {
  if (path === "") return;
  const segments = path.split("/");
  if (segments.length > TRIGGER_SEGMENTS_MAX)
    throw invalidField(field, `must not have more than ${TRIGGER_SEGMENTS_MAX} segments`);
  if (!segments.every((segment) => SEGMENT.test(segment)))
    throw invalidField(field, "must be segments of letters, digits and -._~ between slashes, or percent-encoded");
  if (TAKEN_SEGMENTS.has(segments[0] ?? "") && behind(path, own) === null)
    throw invalidField(field, `begins like the address of another workload; only what is below '${own}' is its own`);
}

function checkCronTrigger(path: string, kind: string, configuration: TriggerConfiguration): void {
  const { schedule, timezone, tasks = [], path: asked = "" } = configuration;
  if (!REQUEST_PATH.test(asked)) throw invalidField(`${path}.path`, "must be a path as it stands in a request");
  checkCron(`${path}.schedule`, { schedule, timezone }, `${path}.timezone`);
  if (kind !== "job" && tasks.length > REQUESTS_MAX)
    throw invalidField(`${path}.tasks`, `must not have more than ${REQUESTS_MAX} entries: each is a request`);
}

function checkUrl(field: string, text: string, privateAllowed: boolean): void {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" && url?.protocol !== "http:")
    throw invalidField(field, "must be an http or https address");
  // A host name is checked when it is dialled, on the resolved address.
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const kind = isIP(host) ? classifyAddress(host) : "public";
  if (kind === "forbidden" || (kind === "private" && !privateAllowed))
    throw invalidField(field, "must be a public address; private ones need BERTH_PRIVATE_CALLBACKS=true at the server");
}
