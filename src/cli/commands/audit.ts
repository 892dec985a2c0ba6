/** The audit log: list, export and verify. */
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS, type OptionSpec } from "../command.ts";
import { REMOTE } from "./options.ts";

const group = GROUPS.verbs;
const actions = () => import("../actions/audit.ts");

const FILTERS: readonly OptionSpec[] = [
  { flags: "--account <id>", about: "all workspaces of this account, and sign-ins" },
  { flags: "--actor <id>", about: "only of this person or service account" },
  { flags: "--action <word>", about: "only this operation, or signIn, consent" },
  { flags: "--outcome <outcome>", about: "only with this outcome", choices: ["ok", "denied", "failed"] },
  { flags: "--start-time <time>", about: "from then on, RFC 3339" },
  { flags: "--end-time <time>", about: "before then" },
];

export const auditVerbs: readonly CommandSpec[] = [
  {
    name: "list",
    group,
    summary: "who changed what, newest first",
    options: [{ flags: "--limit <count>", about: "show at most this many (default 50)" }, ...FILTERS, ...REMOTE],
    examples: ["berth audit list", "berth audit list --outcome denied --start-time 2026-01-01T00:00:00Z"],
    run: async (call) => (await actions()).listAudit(call),
  },
  {
    name: "export",
    group,
    summary: "every line, newest first, one JSON object each",
    options: [...FILTERS, ...CONNECTION_OPTIONS],
    examples: ["berth audit export > audit.jsonl"],
    run: async (call) => (await actions()).exportAudit(call),
  },
  {
    name: "verify",
    group,
    summary: "check that no line was changed, removed or added afterwards",
    details: "Ends with 1 when one was. What it prints last is worth keeping elsewhere.",
    options: CONNECTION_OPTIONS,
    examples: ["berth audit verify"],
    run: async (call) => (await actions()).verifyAudit(call),
  },
];
