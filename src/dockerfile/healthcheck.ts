/** HEALTHCHECK, as the configuration of an image has it. */
import type { Healthcheck } from "./config.ts";
import { DockerfileRefused, shown } from "./refusal.ts";
import type { Instruction } from "./source.ts";
import { jsonList } from "./words.ts";

const UNITS: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };

export function healthcheckOf({ text, flags, line }: Instruction, shell: readonly string[]): Healthcheck {
  const [, word = "", command = ""] = /^(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  if (word.toUpperCase() === "NONE") return { test: ["NONE"] };
  if (word.toUpperCase() !== "CMD" || command === "")
    throw new DockerfileRefused(line, `HEALTHCHECK needs CMD or NONE, not ${shown(word)}.`);
  const list = jsonList(command);
  // The default shell has a form of its own in the configuration.
  const isDefault = shell.join(" ") === "/bin/sh -c";
  const test = list ? ["CMD", ...list] : isDefault ? ["CMD-SHELL", command] : ["CMD", ...shell, command];
  const check: Healthcheck = { test };
  for (const { name, value } of flags) {
    if (name === "interval") check.interval = nanoseconds(value, line);
    else if (name === "timeout") check.timeout = nanoseconds(value, line);
    else if (name === "start-period") check.startPeriod = nanoseconds(value, line);
    else if (name === "start-interval") check.startInterval = nanoseconds(value, line);
    else if (/^\d{1,6}$/.test(value)) check.retries = Number(value);
    else throw new DockerfileRefused(line, `${shown(value)} is no number of retries.`);
  }
  return check;
}

function nanoseconds(value: string, line: number): number {
  const parts = [...value.matchAll(/(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== value)
    throw new DockerfileRefused(line, `${shown(value)} is not a time such as 30s.`);
  return parts.reduce((sum, [, amount, unit = ""]) => sum + Number(amount) * (UNITS[unit] ?? 0), 0);
}
