/**
 * Golden exchanges: what a caller sends, what the provider must receive, what it says, and what the caller must get.
 * Each is one JSON file below test/golden/providers/<set>/. BERTH_UPDATE_GOLDEN=1 rewrites the two expected halves;
 * the difference is then read like any other change.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface StreamEvent {
  event?: string;
  /** An object is sent as JSON, a string as it is. */
  data: unknown;
}

export interface GoldenMessage {
  status: number;
  body?: unknown;
  events?: StreamEvent[];
}

export interface Golden {
  request: { path: string; body: unknown; headers?: Record<string, string> };
  upstream: { path: string; body: unknown; headers?: Record<string, string> };
  answer: GoldenMessage & { headers?: Record<string, string> };
  response: GoldenMessage;
  usage: Record<string, unknown>;
}

const ROOT = "test/golden/providers";

export const updating = process.env.BERTH_UPDATE_GOLDEN === "1";

export function goldens(set: string): { name: string; file: string; golden: Golden }[] {
  return readdirSync(join(ROOT, set))
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => {
      const path = join(ROOT, set, file);
      return {
        name: `${set}/${file.replace(".json", "")}`,
        file: path,
        golden: JSON.parse(readFileSync(path, "utf8")) as Golden,
      };
    });
}

export function saveGolden(file: string, golden: Golden): void {
  writeFileSync(file, `${JSON.stringify(golden, null, 2)}\n`);
}

export const eventText = (events: StreamEvent[]): string =>
  events
    .map(({ event, data }) => {
      const text = typeof data === "string" ? data : JSON.stringify(data);
      return event ? `event: ${event}\ndata: ${text}\n\n` : `data: ${text}\n\n`;
    })
    .join("");

export function parseEvents(text: string): StreamEvent[] {
  return text
    .split("\n\n")
    .filter((block) => block.trim() !== "")
    .map((block) => {
      const field = (name: string) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data") ?? "";
      const parsed: unknown = data.startsWith("{") ? JSON.parse(data) : data;
      const event = field("event");
      return event === undefined ? { data: parsed } : { event, data: parsed };
    });
}
