/** What the operator's commands share: settings as options, and how they answer. */
import { type Invocation, type OptionSpec, wordsOf } from "../cli/command.ts";
import { type Config, loadConfig, SETTINGS } from "../config.ts";
import { flagOf } from "./setting-flags.ts";

export type Setting = keyof typeof SETTINGS;

const CONFIG: OptionSpec = { flags: "--config <file>", about: "configuration file (BERTH_CONFIG)" };
export const FORCE = (about: string): OptionSpec => ({ flags: "--force", about });

export const settingOptions = (names: readonly Setting[]): OptionSpec[] => [
  ...names.map((name) => ({
    flags: `--${flagOf(name)} <value>`,
    about: `${SETTINGS[name].about} (${SETTINGS[name].env})`,
  })),
  CONFIG,
];
export const ALL = settingOptions(Object.keys(SETTINGS) as Setting[]);
export const DATABASE = settingOptions(["data", "database_url"]);

/** Settings among the options, by flag. */
const flagsFrom = (options: Invocation["options"]): Record<string, string> =>
  Object.fromEntries(
    ALL.flatMap((option) => {
      const { key, long } = wordsOf(option);
      const value = options[key];
      return typeof value === "string" ? [[long.slice(2), value]] : [];
    }),
  );

export const flagArgs = (options: Invocation["options"]): string[] =>
  Object.entries(flagsFrom(options)).flatMap(([flag, value]) => [`--${flag}`, value]);

export const configOf = ({ options }: Invocation): Config => loadConfig({ flags: flagsFrom(options) });

export function say({ context }: Invocation, lines: readonly string[]): undefined {
  for (const line of lines) context.print(line);
}
