/** How far a pull is. The server tells it in events: `Pulling X: 12.0 MB of 48.0 MB, 1 of 3 layers.` */
export interface PullProgress {
  text: string;
  /** From 0 to 1. */
  part: number;
}

const UNITS = ["B", "KB", "MB", "GB", "TB"];
const TOLD = /([\d.]+) (\w+) of ([\d.]+) (\w+), \d+ of \d+ layers/;

export function progressOf(events: readonly { type: string; message?: string }[]): PullProgress | null {
  const { type, message = "" } = events.at(-1) ?? { type: "" };
  if (type !== "pulling") return null;
  const [, done, doneUnit, all, allUnit] = TOLD.exec(message) ?? [];
  const total = bytesIn(all, allUnit);
  return { text: message, part: total === 0 ? 0 : bytesIn(done, doneUnit) / total };
}

const bytesIn = (count = "0", unit = "B"): number => Number(count) * 1024 ** Math.max(0, UNITS.indexOf(unit));
