/** The lengths of time that usage is asked for, in days. */
export const SPANS: Readonly<Record<string, number>> = { "1 day": 1, "7 days": 7, "30 days": 30, "90 days": 90 };
