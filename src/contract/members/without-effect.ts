/** Members that are known and kept, because clients send them, and that this platform does nothing with. */
import { canonicalJson } from "../../lib/canonical-json.ts";

export interface WithoutEffect {
  /** From the spec downwards: `runtime.diskPercent`. */
  path: string;
  /** What happens instead, as a clause. */
  why: string;
  /** Values that ask for what is the case anyway. */
  unless?: readonly unknown[];
}

/** A sentence for each such member that is set and was not set alike before. */
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
