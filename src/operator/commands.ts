/** The commands about the server on this machine. What they do is loaded when they are asked for. */
import { type CommandSpec, GROUPS, type OptionSpec, wordsOf } from "../cli/command.ts";
import { SETTINGS } from "../config.ts";
import { flagOf } from "./setting-flags.ts";

const group = GROUPS.operator;

const CONFIG: OptionSpec = { flags: "--config <file>", about: "configuration file (BERTH_CONFIG)" };
const SETTING_OPTIONS: readonly OptionSpec[] = Object.entries(SETTINGS).map(([name, { about, env }]) => ({
  flags: `--${flagOf(name)} <value>`,
  about: `${about} (${env})`,
}));

export const operatorCommands: readonly CommandSpec[] = [
  {
    name: "up",
    group,
    summary: "start the server (the same as npm start)",
    options: [...SETTING_OPTIONS, CONFIG, { flags: "--check-config", about: "print what is in force and exit" }],
    run: async ({ options }) => {
      const { up } = await import("./up.ts");
      const flags = [...SETTING_OPTIONS, CONFIG].flatMap((option) => {
        const value = options[wordsOf(option).key];
        return typeof value === "string" ? [wordsOf(option).long, value] : [];
      });
      await up(options.checkConfig === true ? [...flags, "--check-config"] : flags);
      return undefined;
    },
  },
];
