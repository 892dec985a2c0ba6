import { invalidField } from "../../contract/errors.ts";
import type { Behaviour } from "../port.ts";
import { servedAtOnce } from "../workload/behaviour.ts";
import { model } from "./kind.ts";

export const modelBehaviour: Behaviour = {
  kind: model,
  prepare({ metadata, spec }) {
    spec.enabled ??= true;
    checkFallbacks((spec.fallbacks ?? []) as string[], metadata.name);
  },
  outlook: servedAtOnce,
};

/** Every model is asked once: a name that stands there again would never be tried. */
function checkFallbacks(names: readonly string[], own: unknown): void {
  for (const [index, name] of names.entries()) {
    if (name === own) throw invalidField(`spec.fallbacks[${index}]`, "names the model itself");
    if (names.indexOf(name) < index) throw invalidField(`spec.fallbacks[${index}]`, `names '${name}' a second time`);
  }
}
