/**
 * Regions: the server's own, and the operator's aliases for it. An alias lets clients of a hosted product keep the
 * region names they are used to; a resource shows the name it was asked for by, and runs in the server's own region.
 */
import { invalidField } from "../contract/errors.ts";
import type { Settings } from "./port.ts";

type Regions = Pick<Settings, "region" | "regionAliases">;

/** Clients write this for whichever region is best. */
const AUTO = "auto";

/**
 * The name of the region that a resource shows. Nothing, an empty text and `auto` stand for the one it has already, or
 * the server's own. What a resource has may be written back, even where the operator has dropped the alias since.
 */
export function chosenRegion(field: string, asked: unknown, current: unknown, regions: Regions): string {
  if (asked === undefined || asked === "" || asked === AUTO)
    return typeof current === "string" ? current : regions.region;
  if (typeof asked === "string" && (asked === current || isHere(asked, regions))) return asked;
  throw invalidField(field, `there is no region '${asked}' here; use ${namesOf(regions).join(", ")} or ${AUTO}`);
}

export const isHere = (region: unknown, regions: Regions): boolean =>
  typeof region === "string" && namesOf(regions).includes(region);

/** Whether two names stand for the same place. */
export const isSameRegion = (one: unknown, other: unknown, regions: Regions): boolean =>
  one === other || (isHere(one, regions) && isHere(other, regions));

const namesOf = ({ region, regionAliases }: Regions): string[] => [region, ...regionAliases];
