/** Usage and cost. */
import type { Operation } from "../../contract/operation.ts";
import type { BillingOperations } from "../actions/billing.ts";
import { type CommandSpec, GROUPS, type OptionSpec } from "../command.ts";
import { REMOTE, WATCH } from "./options.ts";

const actions = () => import("../actions/billing.ts");

const WINDOW: readonly OptionSpec[] = [
  { flags: "--account <id>", about: "the account, when there are several" },
  { flags: "--since <duration>", about: "how far back, like 12h, 30d, 8w (default 30d)" },
  { flags: "--start <time>", about: "start of the window, a UTC day or RFC 3339; instead of --since" },
  { flags: "--end <time>", about: "end of the window (default now)" },
];

const RESOLUTIONS = ["hourly", "daily", "weekly", "monthly"] as const;

export function billingCommands(operations: readonly Operation[]): CommandSpec[] {
  const find = (id: string): Operation => {
    const found = operations.find((operation) => operation.id === id);
    if (!found) throw new Error(`the operation list has no ${id}`);
    return found;
  };
  const known: BillingOperations = {
    accounts: find("accountList"),
    metrics: find("accountMetrics"),
    events: find("accountUsageEvents"),
    rebuild: find("accountMetricsRebuild"),
  };
  return [
    {
      name: "billing",
      group: GROUPS.more,
      summary: "what was used and what it cost",
      commands: [
        {
          name: "top",
          group: GROUPS.verbs,
          summary: "what costs most",
          options: [
            {
              flags: "--by <group>",
              about: "what to compare (default name)",
              choices: ["name", "type", "workspace", "dimension"],
            },
            { flags: "--limit <count>", about: "show at most this many (default 20)" },
            ...WINDOW,
            ...WATCH,
            ...REMOTE,
          ],
          examples: ["berth billing top", "berth billing top --by dimension --since 7d --watch"],
          run: async (call) => (await actions()).top(known, call),
        },
        {
          name: "export",
          group: GROUPS.verbs,
          summary: "usage and cost of every resource and dimension, as CSV or JSON lines",
          options: [
            { flags: "--format <format>", about: "csv or jsonl (default csv)", choices: ["csv", "jsonl"] },
            {
              flags: "--resolution <length>",
              about: "one row per hour, day, week or month (default daily)",
              choices: RESOLUTIONS,
            },
            { flags: "--events", about: "the single events that costs are made of, for account admins" },
            ...WINDOW,
            ...REMOTE,
          ],
          examples: [
            "berth billing export --start 2026-03-01T00:00:00Z --end 2026-04-01T00:00:00Z > march.csv",
            "berth billing export --since 24h --resolution hourly --format jsonl",
            "berth billing export --since 1h --events",
          ],
          run: async (call) => (await actions()).exportUsage(known, call),
        },
        {
          name: "rebuild",
          group: GROUPS.verbs,
          summary: "make all sums anew from their events, at the prices in force, for account admins",
          options: [...WINDOW, ...REMOTE],
          examples: ["berth billing rebuild --since 365d"],
          run: async (call) => (await actions()).rebuild(known, call),
        },
      ],
    },
  ];
}
