const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** `512 B`, `3.4 KB`, `120.0 MB`: the largest unit that leaves at least 1. */
export function bytesText(bytes: number): string {
  let [value, at] = [bytes, 0];
  for (; value >= 1024 && at < UNITS.length - 1; at += 1) value /= 1024;
  return `${at === 0 ? value : value.toFixed(1)} ${UNITS[at]}`;
}
