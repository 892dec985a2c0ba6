/** Triggers of a workload: what else starts it beside a call to its address. */
import { invalidField } from "../../contract/errors.ts";
import { CLAIMS, type Link } from "../../contract/references.ts";
import { MASK } from "../../contract/secret-fields.ts";
import { randomSecret } from "../../lib/ids.ts";
import type { Input, PrepareContext } from "../port.ts";
import { checkCron } from "./cron.ts";

interface Trigger {
  id?: string;
  type?: "http" | "http-async" | "cron";
  configuration?: {
    schedule?: string;
    callbackUrl?: string;
    callbackSecret?: string;
    path?: string;
    [more: string]: unknown;
  };
  [more: string]: unknown;
}

/** Paths of triggers within a workspace, claimed so that one address leads to one workload. */
export const TRIGGER_PATH = CLAIMS.triggerPath;

export function prepareTriggers(input: Input, { current, deps, reveal }: PrepareContext): void {
  const triggers = input.spec.triggers as Trigger[] | undefined;
  if (!triggers) return;
  nameTriggers(triggers);
  const stored = current ? deps.store.resources.secretsOf(current) : {};
  for (const [index, trigger] of triggers.entries()) {
    const path = `spec.triggers[${index}].configuration`;
    const { configuration = {} } = trigger;
    trigger.type ??= configuration.schedule === undefined ? "http" : "cron";
    if (trigger.type === "cron") checkCron(`${path}.schedule`, configuration.schedule);
    // The secret is the platform's to make: shown in clear once, then kept as long as there is a callback.
    delete configuration.callbackSecret;
    if (!configuration.callbackUrl) continue;
    checkUrl(`${path}.callbackUrl`, configuration.callbackUrl);
    const key = `/spec/triggers/${trigger.id}/configuration/callbackSecret`;
    if (!Object.hasOwn(stored, key)) reveal.add(key);
    configuration.callbackSecret = Object.hasOwn(stored, key) ? MASK : randomSecret();
  }
}

export function triggerClaims(input: Input, workspace: string): Link[] {
  return ((input.spec.triggers as Trigger[] | undefined) ?? []).flatMap(({ type, configuration }, index) => {
    const path = configuration?.path?.replace(/^\/+|\/+$/g, "") ?? "";
    if (path === "" || type === "cron") return [];
    const field = `spec.triggers[${index}].configuration.path`;
    return [{ field, kind: TRIGGER_PATH, name: `${workspace}/${path}`, exclusive: true, to: "claim" as const }];
  });
}

/** Every trigger has an id of its own; those without one are numbered. */
function nameTriggers(triggers: Trigger[]): void {
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

function checkUrl(path: string, text: string): void {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" && url?.protocol !== "http:")
    throw invalidField(path, "must be an http or https address");
}
