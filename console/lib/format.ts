/** Values as people read them. */
const STEPS: readonly (readonly [unit: string, seconds: number])[] = [
  ["y", 31_536_000],
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];

/** `3m`, `2h`, `5d`: the largest whole unit. */
export function ageOf(time: string, nowMs = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return "";
  const [unit, size] = STEPS.find(([, length]) => seconds >= length) ?? ["s", 1];
  return `${Math.floor(seconds / size)}${unit}`;
}

/** `850 ms`, `12.4 s`, `3m 20s`, `2h 5m`, `14d 2h`. */
export function spanText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes}m ${Math.floor((ms % 60_000) / 1000)}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** From a time to another, or to now when that is empty. */
export const durationOf = (from: string, until: string): string =>
  spanText((until === "" ? Date.now() : Date.parse(until)) - Date.parse(from));

/** `Date.toLocaleString` makes a formatter for each call, which is most of the time that a row of a list takes. */
const TIME = new Intl.DateTimeFormat(undefined, {
  ...{ year: "numeric", month: "numeric", day: "numeric" },
  ...{ hour: "numeric", minute: "numeric", second: "numeric" },
});
const SHORT = new Intl.DateTimeFormat(undefined, {
  ...{ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
});
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const formatted = (format: Intl.DateTimeFormat, time: string): string => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : format.format(date);
};

export const timeOf = (time: string): string => formatted(TIME, time);
/** Without year and seconds. */
export const shortTimeOf = (time: string): string => formatted(SHORT, time);
/** The time of the day. */
export const clockOf = (time: string): string => formatted(CLOCK, time);

export function bytesOf(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let [value, at] = [bytes, 0];
  for (; value >= 1024 && at < units.length - 1; at += 1) value /= 1024;
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

/** A digest in a text, cut to the length that people compare: `sha256:b996805bcaea…`. */
export const shortDigests = (text: string): string => text.replace(/(sha256:[0-9a-f]{12})[0-9a-f]{52}/g, "$1…");

/** `sandbox` → `sandboxes`, `address` → `addresses`. */
const pluralOf = (noun: string): string => `${noun}${/(s|x|ch)$/.test(noun) ? "es" : "s"}`;

const NUMBER = new Intl.NumberFormat("en");

export const countOf = (count: number, noun: string, plural = pluralOf(noun)): string =>
  `${NUMBER.format(count)} ${count === 1 ? noun : plural}`;

export const moneyOf = (amount: number): string =>
  amount.toLocaleString("en", { style: "currency", currency: "USD", maximumFractionDigits: amount < 1 ? 4 : 2 });
