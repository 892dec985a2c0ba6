import { invalidField } from "../../contract/errors.ts";
import { cronTimes } from "../../lib/time/cron.ts";

/** Time zone of a pattern that names none. */
export const TIMEZONE_DEFAULT = "UTC";

export interface CronFields {
  schedule: string | undefined;
  timezone?: string | undefined;
}

/** Requires five fields with a resolution of one minute, and refuses a pattern that never matches. */
export function checkCron(path: string, { schedule, timezone }: CronFields, timezonePath = ""): void {
  if (!schedule) throw invalidField(path, "a cron trigger needs a schedule of five fields, such as '*/15 * * * *'");
  if (timezone !== undefined && !isTimezone(timezone))
    throw invalidField(timezonePath, `'${timezone}' is not a time zone such as 'Europe/Berlin'`);
  if (nextRun(path, schedule, timezone ?? TIMEZONE_DEFAULT) === null)
    throw invalidField(path, `'${schedule}' never comes`);
}

function nextRun(path: string, pattern: string, timezone: string): number | null {
  try {
    return cronTimes(pattern, timezone)(Date.now());
  } catch {
    throw invalidField(path, `'${pattern}' is not a cron pattern of five fields (minute hour day month weekday)`);
  }
}

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
