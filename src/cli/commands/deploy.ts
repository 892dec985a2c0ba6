/** From code to something that runs. */
import { deploy } from "../actions/deploy.ts";
import { type CommandSpec, GROUPS } from "../command.ts";
import type { Noun } from "../nouns.ts";
import { REMOTE } from "./options.ts";

const DETAILS = `Reads berth.toml (name, type, [entrypoint] prod, [env], [runtime], [[triggers]], [[volumes]], policies, public),
sends the folder without what .berthignore names, and waits until it answers or has failed.`;

export const deployCommands = (nouns: readonly Noun[]): CommandSpec[] => [
  {
    name: "deploy",
    group: GROUPS.resources,
    summary: "build and run the code in a folder",
    details: DETAILS,
    args: [{ name: "folder", about: "where the code is; this folder when left out", optional: true, offers: [] }],
    options: [
      { flags: "-n, --name <name>", about: "instead of the name in the file or of the folder" },
      { flags: "-e, --env-file <file>", about: "variables for [env], KEY=VALUE per line", many: true },
      { flags: "-s, --secret <key=value>", about: "a variable for [env] that is written nowhere", many: true },
      ...REMOTE,
    ],
    examples: ["berth deploy", "berth deploy examples/agent-echo", "berth deploy . --name staging -s TOKEN=abc"],
    run: async (call) => deploy(nouns, call),
  },
];
