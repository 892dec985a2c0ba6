/** Settings as flags: `--port 9000` sets `port`. Names and help come from the table of settings. */
import { parseArgs } from "node:util";
import { SETTINGS } from "../config.ts";
import { UsageError } from "../lib/usage-error.ts";

export interface ParsedFlags {
  /** By flag name. An unknown setting is refused when the configuration is loaded, with a suggestion. */
  flags: Record<string, string>;
  switches: Set<string>;
}

export const flagOf = (setting: string): string => setting.replaceAll("_", "-");

/** A boolean setting: its flag alone means on, and `--flag=false` off. */
const isYesNo = (name: string): boolean =>
  SETTINGS[name as keyof typeof SETTINGS].schema.safeParse("true").data === true;

export function parseSettingFlags(
  args: readonly string[],
  { command, switches }: { command: string; switches: readonly string[] },
): ParsedFlags {
  const help = `see \`berth ${command} --help\``;
  const options = Object.fromEntries([
    ...Object.keys(SETTINGS).map((name) => [flagOf(name), { type: isYesNo(name) ? "boolean" : "string" } as const]),
    ["config", { type: "string" as const }],
    ...switches.map((flag) => [flag, { type: "boolean" as const, ...(flag === "help" ? { short: "h" } : {}) }]),
  ]);
  // Not strict: the configuration refuses a wrong flag with a better message.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const unknown = tokens.find((token) => token.kind === "option" && !Object.hasOwn(options, token.name));
  if (unknown?.kind === "option") return { flags: { [unknown.name]: "" }, switches: new Set() };
  const yesNo = new Set(Object.keys(SETTINGS).filter(isYesNo).map(flagOf));
  const parsed: ParsedFlags = { flags: {}, switches: new Set() };
  for (const token of tokens) {
    if (token.kind === "positional") throw new UsageError(`unexpected argument '${token.value}'.`, help);
    if (token.kind !== "option") continue;
    if (switches.includes(token.name)) parsed.switches.add(token.name);
    else if (yesNo.has(token.name)) parsed.flags[token.name] = token.value ?? "true";
    else if (token.value === undefined || (token.value.startsWith("--") && !token.inlineValue))
      throw new UsageError(`${token.rawName} needs a value.`, help);
    else parsed.flags[token.name] = token.value;
  }
  return parsed;
}

const FLAG_WIDTH = 18;
const ENV_WIDTH = 20;

export const settingsHelp = (): string =>
  [
    ...Object.entries(SETTINGS).map(([name, { env, about }]) => {
      const byDefault = defaultOf(name);
      return line(flagOf(name), env, byDefault === null ? about : `${about} Default: ${byDefault}.`);
    }),
    line("config", "BERTH_CONFIG", "Configuration file (TOML). Default: berth.toml in the data folder."),
  ].join("\n");

const line = (flag: string, env: string, about: string): string =>
  `  --${flag.padEnd(FLAG_WIDTH)} ${env.padEnd(ENV_WIDTH)} ${about}`;

/** The default to show in help, or null for none. */
export function defaultOf(name: string): string | null {
  const parsed = SETTINGS[name as keyof typeof SETTINGS].schema.safeParse(undefined);
  const value = parsed.success ? parsed.data : undefined;
  return typeof value === "string" || typeof value === "number" || value === true ? String(value) : null;
}
