/** Formats JSON log lines for a terminal: time, level, message, fields, and the stack below. */
import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

const LEVELS: Record<number, [string, Style]> = {
  10: ["trace", "dim"],
  20: ["debug", "dim"],
  30: ["info", "green"],
  40: ["warn", "yellow"],
  50: ["error", "red"],
  60: ["fatal", "red"],
};

/** Members that are shown elsewhere or that tell a person nothing. */
const HIDDEN = new Set(["level", "time", "pid", "hostname", "msg", "err"]);

export function terminalLog(out: NodeJS.WriteStream): { write(line: string): void } {
  return { write: (line) => void out.write(`${formatLogLine(line)}\n`) };
}

export function formatLogLine(line: string): string {
  const record = JSON.parse(line) as Record<string, unknown> & { err?: { stack?: string; message?: string } };
  const [level, style] = LEVELS[Number(record.level)] ?? ["log", "dim"];
  const time = new Date(Number(record.time)).toTimeString().slice(0, 8);
  const fields = Object.entries(record)
    .filter(([key]) => !HIDDEN.has(key))
    .map(
      ([key, value]) => ` ${styleText("dim", `${key}=`)}${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
  const stack = record.err ? `\n    ${(record.err.stack ?? record.err.message ?? "").replaceAll("\n", "\n    ")}` : "";
  return `${styleText("dim", time)} ${styleText(style, level.padEnd(5))} ${record.msg ?? ""}${fields.join("")}${stack}`;
}
