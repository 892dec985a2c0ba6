/**
 * Regions: the server's own, and the operator's aliases for it. An alias lets clients of a hosted product keep the
 * region names they are used to; a resource shows the name it was asked for by, and runs in the server's own region.
 */
import { invalidField } from "../contract/errors.ts";
import type { Settings } from "./port.ts";

type Regions = Pick<Settings, "region" | "regionAliases">;

/** Clients send this to let the platform choose the region. */
const AUTO = "auto";

/**
 * The region name that a resource shows. An absent or empty value and `auto` keep the stored region, or select the
 * server's own. The stored name may be written back even after the operator removed the alias.
 */
export function chosenRegion(field: string, asked: unknown, current: unknown, regions: Regions): string {
  if (asked === undefined || asked === "" || asked === AUTO)
    return typeof current === "string" ? current : regions.region;
  if (typeof asked === "string" && (asked === current || isHere(asked, regions))) return asked;
  throw invalidField(field, `there is no region '${asked}' here; use ${namesOf(regions).join(", ")} or ${AUTO}`);
}

export const isHere = (region: unknown, regions: Regions): boolean =>
  typeof region === "string" && namesOf(regions).includes(region);

/** Whether two names stand for the same region. */
export const isSameRegion = (one: unknown, other: unknown, regions: Regions): boolean =>
  one === other || (isHere(one, regions) && isHere(other, regions));

const namesOf = ({ region, regionAliases }: Regions): string[] => [region, ...regionAliases];
