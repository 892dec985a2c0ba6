/** The arguments of `test/run.ts`. An argument that the runner does not know is refused, not taken for nothing. */
import { parseArgs } from "node:util";

export const USAGE = `usage: node test/run.ts [options] [part of a path]...

Runs every test file, or those whose path has one of the parts.

  --long         also the long variants: all rounds of the crash suites, all cases of the fuzz suites, *.long.ts
  --repeat=N     every file N times, one round after the other, to see whether a test is red by chance
  --times        at the end, how long each file took, and its CPU time
  --break=SEED   assertions fail by chance, to see what failing tests leave open
  --help         this text`;

export interface RunnerOptions {
  long: boolean;
  times: boolean;
  help: boolean;
  repeat: number;
  seed: string | undefined;
  parts: string[];
}

/** Throws an Error whose message is for the person who typed the arguments. */
export function runnerOptions(args: readonly string[]): RunnerOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      long: { type: "boolean", default: false },
      times: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      repeat: { type: "string", default: "1" },
      break: { type: "string" },
    },
  });
  const { long, times, help, break: seed } = values;
  const repeat = Number(values.repeat);
  if (!Number.isInteger(repeat) || repeat < 1)
    throw new Error(`--repeat=${values.repeat} is no number of rounds; --repeat=4 runs every file four times.`);
  return { long, times, help, repeat, seed, parts: positionals };
}
