/** A member of a record whose keys come from strangers: `constructor` and the like are no members of every record. */
export const ownValue = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
