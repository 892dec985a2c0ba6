/**
 * Shows secrets that the platform generated for callbacks; the answer to the create is the only time they are readable.
 */
import { MASK } from "../contract/secret-fields.ts";
import { isObject, memberAt } from "./json-path.ts";

export function tellCallbackSecrets(resource: unknown, note: (line: string) => void): void {
  const triggers = memberAt(resource, "spec.triggers");
  for (const trigger of Array.isArray(triggers) ? triggers.filter(isObject) : []) {
    const secret = memberAt(trigger, "configuration.callbackSecret");
    if (typeof secret === "string" && secret !== "" && secret !== MASK)
      note(`trigger '${trigger.id}': callbacks are signed with ${secret}; keep it, it is not shown again`);
  }
}
