/** Reads JSON from untrusted sources: any value may have an unexpected type, and no function here throws. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A member of an object; undefined when `value` is not an object. */
export const at = (value: unknown, key: string): unknown => (isRecord(value) ? value[key] : undefined);

/** A text as it is; "" for every other value. `String` throws for some of them: `{"toString":0}`, or deep lists. */
export const textOrNone = (value: unknown): string => (typeof value === "string" ? value : "");

/** The items of a list; none when `value` is not a list. */
export const itemsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
