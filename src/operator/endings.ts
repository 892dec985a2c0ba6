/** What a stop that ends workloads means for them, told to the operator before it happens. */
import type { Config } from "../config.ts";
import { printable } from "../lib/printable.ts";
import type { OwnedWorkload } from "../node/drivers/options.ts";
import { ownedWorkloads } from "./runtime.ts";

/** Most names listed; the others are counted. */
const NAMES_MAX = 20;

/** Lines for a stop after which sandboxes have their files; empty when nothing runs. */
export async function endingsOf(config: Config): Promise<string[]> {
  const running = (await ownedWorkloads(config)).filter(({ runs }) => runs);
  if (running.length === 0) return [];
  const stay = running.some(({ keepsFiles }) => keepsFiles)
    ? " Files of sandboxes stay: the next start goes on with them."
    : "";
  return [`${counted(running)} ${running.length === 1 ? "ends" : "end"}.${stay}`, ...listed(running)];
}

/** Lines for a stop that takes the files too; empty when nothing is lost. */
export async function lossesOf(config: Config): Promise<string[]> {
  const lost = (await ownedWorkloads(config)).filter(({ runs, keepsFiles }) => runs || keepsFiles);
  if (lost.length === 0) return [];
  return ["These end, and their files outside of volumes and drives are gone for good:", ...listed(lost)];
}

const counted = ({ length }: readonly unknown[]): string => `${length} workload${length === 1 ? "" : "s"}`;

function listed(all: readonly OwnedWorkload[]): string[] {
  const byKind = Map.groupBy(all, ({ log }) => log?.plural ?? "other workloads");
  return [...byKind].map(
    ([kind, some]) => `  ${some.length} ${some.length === 1 ? singular(kind) : kind}: ${namesOf(some)}`,
  );
}

const singular = (plural: string): string => plural.replace(/(?<=x|s)es$|s$/, "");

function namesOf(all: readonly OwnedWorkload[]): string {
  const names = [...new Set(all.map(nameOf))].sort();
  const rest = names.length - NAMES_MAX;
  return names.slice(0, NAMES_MAX).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

/** The name with its workspace, since names are unique only within a workspace. */
const nameOf = ({ log, name }: OwnedWorkload): string => printable(log ? `${log.workspace}/${log.name}` : name);
