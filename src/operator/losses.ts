/** What is lost by a stop that ends workloads: their files outside of volumes and drives. */
import type { Config } from "../config.ts";
import { printable } from "../lib/printable.ts";
import { livingWorkloads } from "./runtime.ts";

/** Most names listed; the others are counted. */
const NAMES_MAX = 20;

/** Returns the lines to show to the operator; empty when nothing is lost. */
export async function lossesOf(config: Config): Promise<string[]> {
  const byKind = Map.groupBy(
    (await livingWorkloads(config)).map((each) => ({
      kind: each.log?.plural ?? "other workloads",
      name: nameOf(each),
    })),
    ({ kind }) => kind,
  );
  if (byKind.size === 0) return [];
  return [
    "These end, and their files outside of volumes and drives are gone for good:",
    ...[...byKind].map(([kind, all]) => `  ${all.length} ${all.length === 1 ? singular(kind) : kind}: ${listed(all)}`),
  ];
}

/** The name with its workspace, since names are unique only within a workspace. */
const nameOf = ({ log, name }: { log?: { workspace: string; name: string }; name: string }): string =>
  printable(log ? `${log.workspace}/${log.name}` : name);

const singular = (plural: string): string => plural.replace(/(?<=x|s)es$|s$/, "");

function listed(all: readonly { name: string }[]): string {
  const names = [...new Set(all.map(({ name }) => name))].sort();
  const rest = names.length - NAMES_MAX;
  return names.slice(0, NAMES_MAX).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
