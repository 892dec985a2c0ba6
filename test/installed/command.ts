/** The installation's own command line, with the home and the variables of whoever installed it. */
import { join } from "node:path";
import { type Ended, runBerth, type Spawned, spawnBerth } from "../berth-process.ts";
import { type Installation, strangersEnv } from "./installation.ts";

export interface CommandOptions {
  workspace?: string;
  input?: string;
  cwd?: string;
  env?: Record<string, string>;
}

const optionsOf = (
  { root, home }: Installation,
  { workspace, input, cwd = root, env = {} }: CommandOptions,
): Parameters<typeof runBerth>[1] => ({
  root,
  cwd,
  env: strangersEnv({ home, ...(workspace === undefined ? {} : { BERTH_WORKSPACE: workspace }), ...env }),
  ...(input === undefined ? {} : { input }),
});

/** The credentials are those in the home folder. Commands share a process; see `runBerth`. */
export const commandOf =
  (installed: Installation) =>
  (args: readonly string[], options: CommandOptions = {}): Promise<Ended> =>
    runBerth(args, optionsOf(installed, options));

export const spawnCommand = (installed: Installation, args: readonly string[], options: CommandOptions = {}): Spawned =>
  spawnBerth(args, optionsOf(installed, options));

/** A folder below the home, for what a person would keep there. */
export const folderOf = ({ home }: Installation, name: string): string => join(home, name);
