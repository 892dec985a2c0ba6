/** A host belongs to the domain with the longest name at or above it. */

export function nearestIn<T>(domains: ReadonlyMap<string, T>, host: string): T | undefined {
  if (domains.size === 0) return undefined;
  for (let name = host; ; name = name.slice(name.indexOf(".") + 1)) {
    const found = domains.get(name);
    if (found !== undefined || !name.includes(".")) return found;
  }
}
