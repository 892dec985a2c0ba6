/** Reading JSON that somebody else wrote: every step may find something else than expected, and none of them throws. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A member of an object; undefined when it is not one. */
export const at = (value: unknown, key: string): unknown => (isRecord(value) ? value[key] : undefined);

/** The items of a list; none when it is not one. */
export const itemsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
