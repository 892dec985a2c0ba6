/** Options that several commands share. */
import { SORTS } from "../../contract/list-query.ts";
import { CONNECTION_OPTIONS, type OptionSpec } from "../command.ts";
import { OUTPUT_OPTION } from "../output.ts";

export const WATCH_SECONDS_DEFAULT = 2;

/** Options of every command that talks to a server and shows a result. */
export const REMOTE: readonly OptionSpec[] = [...CONNECTION_OPTIONS, OUTPUT_OPTION];

export const WATCH: readonly OptionSpec[] = [
  { flags: "--watch", about: "show it again whenever it changes, until Ctrl-C" },
  {
    flags: "--interval <seconds>",
    about: `how often --watch looks when the server tells of no change (default 30, or ${WATCH_SECONDS_DEFAULT} without events)`,
  },
];

/** For operations that answer with a stream of events. */
export const EVENTS: readonly OptionSpec[] = [{ flags: "--events <count>", about: "end after this many events" }];

export const LISTING: readonly OptionSpec[] = [
  { flags: "-q, --search <text>", about: "only those with this in name, display name or labels" },
  { flags: "--label <key=value>", about: "only those with this label; `key` alone for any value, more with commas" },
  { flags: "--status <status>", about: "only those with this status; more with commas" },
  { flags: "--sort <order>", about: "order of the list", choices: SORTS },
  { flags: "--limit <count>", about: "show at most this many" },
];

export const QUERY: OptionSpec = { flags: "--query <key=value>", about: "another query parameter", many: true };

export const FILES: readonly OptionSpec[] = [
  { flags: "-f, --file <file>", about: "YAML or JSON; a folder, or - for standard input", many: true },
  { flags: "-e, --env-file <file>", about: "variables for the files, KEY=VALUE per line", many: true },
  { flags: "-s, --secret <key=value>", about: "a variable for the files that is written nowhere", many: true },
];

export const MEMBERS: readonly OptionSpec[] = [
  {
    flags: "--set <path=value>",
    about: "a member of the resource, a number, a text or JSON, like spec.size=10",
    many: true,
  },
  { flags: "--label <key=value>", about: "a label", many: true },
  { flags: "--display-name <text>", about: "the display name" },
];

export const YES: OptionSpec = { flags: "--yes", about: "delete a workspace that is not empty without asking" };

export const DRY_RUN: OptionSpec = { flags: "--dry-run", about: "ask the server what would happen; change nothing" };

export const VALIDATE: OptionSpec = {
  flags: "--validate",
  about: "only check the files, unknown members included; no server is asked",
};
