import { Cron } from "croner";
import { invalidField } from "../../contract/errors.ts";

/** Five fields, one-minute grain, in UTC; a pattern that never comes is refused too. */
export function checkCron(path: string, pattern: string | undefined): void {
  if (!pattern) throw invalidField(path, "a cron trigger needs a schedule of five fields, such as '*/15 * * * *'");
  if (nextRun(path, pattern) === null) throw invalidField(path, `'${pattern}' never comes`);
}

function nextRun(path: string, pattern: string): Date | null {
  try {
    return new Cron(pattern, { mode: "5-part", timezone: "UTC", paused: true }).nextRun();
  } catch {
    throw invalidField(path, `'${pattern}' is not a cron pattern of five fields (minute hour day month weekday)`);
  }
}
