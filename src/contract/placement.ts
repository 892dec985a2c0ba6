/**
 * Policies about where and on what hardware a workload may run. Of several policies of one type, one that allows is
 * enough; of different types, each has to allow. A property of the server that the operator has not configured is
 * refused, with the name of the missing setting.
 */
export interface PlacementPolicy {
  name: string;
  type: string;
  /** Kinds that the policy applies to; none = all. */
  resourceTypes?: readonly string[] | undefined;
  locations?: readonly { type?: string | undefined; name?: string | undefined }[] | undefined;
  flavors?: readonly { type?: string | undefined; name?: string | undefined }[] | undefined;
}

/** The location and hardware of the server. */
export interface Place {
  /** The region's name and its aliases. */
  regions: readonly string[];
  /** Empty or absent = not configured. */
  country?: string | undefined;
  continent?: string | undefined;
  flavors: readonly { type: string; name: string }[];
}

/** Why the policies do not allow a workload of this kind here; null when they do. */
export function placementRefusal(policies: readonly PlacementPolicy[], kind: string, place: Place): string | null {
  const own = policies.filter(
    ({ resourceTypes }) => !resourceTypes || resourceTypes.length === 0 || resourceTypes.includes(kind),
  );
  return locationRefusal(own, place) ?? flavorRefusal(own, place);
}

export function locationRefusal(policies: readonly PlacementPolicy[], place: Place): string | null {
  const rules = policies.filter(({ type }) => type === "location");
  const allowed = rules.flatMap(({ locations = [] }) => locations);
  if (rules.length === 0 || allowed.some((location) => isHere(location, place))) return null;
  const untold = (["country", "continent"] as const).filter(
    (sort) => !place[sort] && allowed.some(({ type }) => type === sort),
  );
  const hint = untold.map((sort) => `; the operator has not told its ${sort} (BERTH_${sort.toUpperCase()})`).join("");
  return `${named(rules)} allows ${listed(allowed)}, and this server is in region ${place.regions[0]}${standing(place)}${hint}`;
}

function flavorRefusal(policies: readonly PlacementPolicy[], { flavors: had }: Place): string | null {
  const rules = policies.filter(({ type }) => type === "flavor");
  const allowed = rules.flatMap(({ flavors = [] }) => flavors);
  const fits = allowed.some(({ type, name }) =>
    had.some((own) => (!type || type === own.type) && (!name || processor(name) === processor(own.name))),
  );
  if (rules.length === 0 || fits) return null;
  return `${named(rules)} allows ${listed(allowed)}, and this server has ${listed(had)}`;
}

function isHere({ type, name = "" }: { type?: string | undefined; name?: string | undefined }, place: Place): boolean {
  const word = name.toLowerCase();
  if (type === "location") return place.regions.includes(word);
  if (type !== "country" && type !== "continent") return false;
  return word !== "" && place[type] === word;
}

/** Canonical names of processor architectures, by alias. */
const PROCESSORS: Record<string, string> = {
  x86_64: "x86",
  "x86-64": "x86",
  x64: "x86",
  amd64: "x86",
  arm64: "arm",
  aarch64: "arm",
};

const processor = (name: string): string => PROCESSORS[name.toLowerCase()] ?? name.toLowerCase();

const named = (rules: readonly PlacementPolicy[]): string =>
  `policy ${rules.map(({ name }) => `'${name}'`).join(", ")}`;

const listed = (items: readonly { type?: string | undefined; name?: string | undefined }[]): string =>
  items.map(({ type, name }) => [type, name].filter(Boolean).join(" ")).join(", ") || "nothing";

const standing = ({ country, continent }: Place): string =>
  [country, continent]
    .filter(Boolean)
    .map((word) => `, ${word}`)
    .join("");
