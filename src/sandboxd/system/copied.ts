/**
 * A copy of a workload goes on from the memory of another one (`SandboxdConfig.generation`). Its daemon still has the
 * variables of that one, and its programs the same random state. Before anybody reaches the copy, the daemon takes its
 * new configuration over and tells the programs.
 */
import { readdirSync, renameSync, writeFileSync } from "node:fs";
import type { SandboxdConfig } from "../../contract/sandbox-wire.ts";
import type { Environment } from "../process/environment.ts";

/** Ignored by every program that does not ask for it; the usual word for "you go on". */
const TOLD_BY = "SIGCONT";
const INIT = 1;

/** Returns the generation that holds from now on. `read`: the configuration as the platform has written it. */
export function takeOver(
  known: string | undefined,
  read: () => SandboxdConfig,
  environment: Pick<Environment, "replace">,
): string | undefined {
  const config = read();
  const { generation, generationFile } = config;
  if (generation === known || generation === undefined) return known;
  environment.replace(config);
  if (generationFile !== undefined) writeWhole(generationFile, `${generation}\n`);
  for (const pid of others()) tell(pid);
  return generation;
}

/** Written inside the workload, so that watches of programs on the file fire. */
function writeWhole(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o644 });
  renameSync(`${file}.new`, file);
}

const others = (): number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > INIT && pid !== process.pid);

function tell(pid: number): void {
  try {
    process.kill(pid, TOLD_BY);
  } catch {
    // it has ended
  }
}
