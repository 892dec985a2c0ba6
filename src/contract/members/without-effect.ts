/** Members that are accepted and stored, because clients send them, but have no effect on this platform. */
import { canonicalJson } from "../../lib/canonical-json.ts";

export interface WithoutEffect {
  /** Path below the spec: `runtime.diskPercent`. */
  path: string;
  /** The actual behaviour, as a clause. */
  why: string;
  /** Values that match the actual behaviour and need no warning. */
  unless?: readonly unknown[];
}

/** Returns a sentence for each such member that is set and was not set to the same value before. */
export function withoutEffect(
  declared: readonly WithoutEffect[] | undefined,
  spec: Record<string, unknown>,
  before: Record<string, unknown> | null,
): string[] {
  if (!declared) return [];
  return declared.flatMap(({ path, why, unless = [] }) => {
    const value = memberAt(spec, path);
    if (value === undefined || unless.includes(value) || isEmpty(value)) return [];
    if (before && canonicalJson([memberAt(before, path)]) === canonicalJson([value])) return [];
    return [`spec.${path} is kept and has no effect: ${why}.`];
  });
}

const memberAt = (root: Record<string, unknown>, path: string): unknown =>
  path.split(".").reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], root);

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;
