/** The audit log as a file, and whether it is whole. */
import { auditLines, verifyAudit } from "../actions/audit.ts";
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";
import { QUERY } from "./options.ts";

const group = GROUPS.verbs;

export const auditVerbs: readonly CommandSpec[] = [
  {
    name: "export",
    group,
    summary: "the lines of the workspace or of a whole account, newest first, one JSON object each",
    options: [
      { flags: "--account <id>", about: "all workspaces of this account, and sign-ins" },
      QUERY,
      ...CONNECTION_OPTIONS,
    ],
    examples: [
      "berth audit export > audit.jsonl",
      "berth audit export --query outcome=denied --query startTime=2026-01-01T00:00:00Z",
    ],
    run: auditLines,
  },
  {
    name: "verify",
    group,
    summary: "check that no line was changed, removed or added afterwards",
    details: "Ends with 1 when one was. What it prints last is worth keeping elsewhere.",
    options: CONNECTION_OPTIONS,
    examples: ["berth audit verify"],
    run: verifyAudit,
  },
];
