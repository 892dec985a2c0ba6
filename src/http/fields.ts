/** Header fields as a flat list of names and values, the form they have on the wire. */
import { lowerName } from "./http1/header-name.ts";

/** The first value under a lower-case name. */
export function fieldOf(fields: readonly string[], name: string): string | undefined {
  for (let i = 0; i < fields.length; i += 2) {
    const spelled = fields[i] as string;
    if (spelled.length === name.length && lowerName(spelled) === name) return fields[i + 1];
  }
  return undefined;
}
