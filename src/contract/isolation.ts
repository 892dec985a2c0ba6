/** The isolation grade that a workload gets: the usual one of its machine, or a stronger one where it is asked for. */

import { type Grade, isAtLeast } from "../lib/grades.ts";
import { PlatformError } from "./errors.ts";

/** The weakest of the offered grades that is strong enough for each of those asked for; `offered`: strongest first. */
export function chooseGrade(offered: readonly Grade[], asked: readonly (Grade | undefined)[]): Grade {
  const wanted = asked.filter((least) => least !== undefined);
  const found = offered.toReversed().find((grade) => wanted.every((least) => isAtLeast(grade, least)));
  if (found !== undefined) return found;
  const unmet = wanted.find((least) => !offered.some((grade) => isAtLeast(grade, least)));
  throw new PlatformError("unprocessable", refusal(unmet ?? "vm-like", offered));
}

function refusal(asked: Grade, offered: readonly Grade[]): string {
  const words = offered.map((grade) => `'${grade}'`).join(" and ");
  const needs = asked === "vm-like" ? " Grade 'vm-like' needs the driver local, root and gVisor (runsc)." : "";
  return `The isolation '${asked}' is asked for, and this server offers ${words}.${needs}`;
}
