/** `berth logs agent/echo -f` */
import { SEVERITY_NAMES } from "../../contract/log-line.ts";
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";
import type { Noun } from "../nouns.ts";

export const logsCommands = (nouns: readonly Noun[]): CommandSpec[] => [
  {
    name: "logs",
    group: GROUPS.resources,
    summary: "show what a workload has written",
    details: "Oldest first: time, severity, line. Of jobs also the task. At most three days back.",
    args: [
      { name: "kind/name", about: "the workload, like agent/echo", offers: "kind" },
      { name: "name", about: "its name, when the first word is the kind alone", optional: true, offers: "name" },
    ],
    options: [
      { flags: "-f, --follow", about: "go on with what comes, until Ctrl-C" },
      { flags: "--since <duration>", about: "from how long ago on: 30s, 15m, 2h, 3d (default 1h)" },
      { flags: "--limit <count>", about: "only the newest lines" },
      { flags: "--severity <names>", about: `only these, separated by commas: ${SEVERITY_NAMES.join(", ")}` },
      { flags: "--search <text>", about: "only lines with this text" },
      { flags: "--build", about: "only what the build wrote" },
      { flags: "--execution <id>", about: "only this execution of a job" },
      { flags: "--task <id>", about: "only this task of a job" },
      { flags: "--plain", about: "the lines alone, without time and severity" },
      { flags: "-o, --output <format>", about: "json: one object per line", choices: ["json"] },
      ...CONNECTION_OPTIONS,
    ],
    examples: [
      "berth logs agent/echo -f",
      "berth logs agent/echo --severity ERROR,FATAL --since 1d",
      "berth logs job/batch --execution ID --task 3",
    ],
    run: async (call) => (await import("../actions/logs.ts")).logs(nouns, call),
  },
];
