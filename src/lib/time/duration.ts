const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Parses "30s", "15m", "24h", "7d", "2w" or plain seconds; null for anything else. */
export function parseDurationMs(text: string | number): number | null {
  if (typeof text === "number") return Number.isFinite(text) && text >= 0 ? text * 1000 : null;
  const match = /^(\d{1,12})([smhdw])?$/.exec(text.trim());
  if (!match?.[1]) return null;
  return Number(match[1]) * UNIT_MS[(match[2] ?? "s") as keyof typeof UNIT_MS];
}

/** Formats a duration in the largest unit, up to days, that gives a whole number. */
export function formatDuration(ms: number): string {
  const unit = (["d", "h", "m"] as const).find((word) => ms > 0 && ms % UNIT_MS[word] === 0) ?? "s";
  return `${Math.floor(ms / UNIT_MS[unit])}${unit}`;
}
