/**
 * Scenarios of the conformance suite that cannot be passed, each with its reason: `scenario` for a whole one,
 * `scenario:check` for a part. One that is named here and passes is a mistake, as is one that fails and is not named.
 */
import assert from "node:assert/strict";
import type { Failure, Revision } from "./conformance.ts";

export type NotHere = Record<string, string>;

const SUITES_TOOL = "calls a tool by a name that only servers made for the suite have";
const NO_PROMPTS = "the server has tools and no prompts, and says so";
const NO_RESOURCES = "the server has tools and no resources, and says so";
const NO_LOGGING = "the server sends no log messages to clients, and says so";
const NO_COMPLETIONS = "the server completes no arguments, and says so";
const TASKS = "an extension, which no revision requires; the official kit has no server for it";
const CREDENTIALS =
  "is for servers without authentication; ours ask for a credential, which a page of another origin does not have";

const all = (reason: string, names: string[]): NotHere => Object.fromEntries(names.map((name) => [name, reason]));

const TASK_SCENARIOS = all(TASKS, [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
]);

const TOOLS_OF_THE_SUITE = [
  "tools-call-simple-text",
  "tools-call-image",
  "tools-call-audio",
  "tools-call-embedded-resource",
  "tools-call-mixed-content",
  "tools-call-error",
  "tools-call-with-progress",
  "json-schema-2020-12",
];

/** For servers that consist of tools of their own. */
const TOOLS_ONLY: Record<Revision, NotHere> = {
  "2025-11-25": {
    ...all(SUITES_TOOL, [
      ...TOOLS_OF_THE_SUITE,
      "tools-call-with-logging",
      "tools-call-sampling",
      "tools-call-elicitation",
      "elicitation-sep1034-defaults",
      "elicitation-sep1330-enums",
    ]),
    ...all(NO_PROMPTS, [
      "prompts-list",
      "prompts-get-simple",
      "prompts-get-with-args",
      "prompts-get-embedded-resource",
      "prompts-get-with-image",
    ]),
    ...all(NO_RESOURCES, [
      "resources-list",
      "resources-read-text",
      "resources-read-binary",
      "resources-templates-read",
      "resources-subscribe",
      "resources-unsubscribe",
    ]),
    "logging-set-level": NO_LOGGING,
    "completion-complete": NO_COMPLETIONS,
    "dns-rebinding-protection": CREDENTIALS,
  },
  "2026-07-28": {
    ...all(SUITES_TOOL, [
      ...TOOLS_OF_THE_SUITE,
      "http-custom-header-server-validation",
      "input-required-result-basic-elicitation",
      "input-required-result-basic-sampling",
      "input-required-result-basic-list-roots",
      "input-required-result-request-state",
      "input-required-result-multiple-input-requests",
      "input-required-result-multi-round",
      "input-required-result-result-type",
      "input-required-result-tampered-state",
      "input-required-result-capability-check",
      "server-stateless:sep-2575-server-rejects-undeclared-capability",
      "server-stateless:sep-2575-missing-capability-http-400",
      "server-stateless:sep-2575-http-server-no-independent-requests-on-stream",
      "server-stateless:sep-2575-server-no-log-without-loglevel",
    ]),
    ...all(NO_PROMPTS, [
      "prompts-list",
      "prompts-get-simple",
      "prompts-get-with-args",
      "prompts-get-embedded-resource",
      "prompts-get-with-image",
      "input-required-result-non-tool-request",
      "caching:sep-2549-prompts-list-caching-hints",
    ]),
    ...all(NO_RESOURCES, [
      "resources-list",
      "resources-read-text",
      "resources-read-binary",
      "resources-templates-read",
      "caching:sep-2549-resources-list-caching-hints",
      "caching:sep-2549-resources-templates-list-caching-hints",
    ]),
    ...TASK_SCENARIOS,
    "completion-complete": NO_COMPLETIONS,
    "dns-rebinding-protection": CREDENTIALS,
  },
};

/** For a server that has everything the suite asks for. */
const EVERYTHING: Record<Revision, NotHere> = { "2025-11-25": {}, "2026-07-28": TASK_SCENARIOS };

/** The same with the bridge before it. */
const BEHIND_THE_DOOR = "is for servers that anybody may reach; the bridge is inside the workload, behind the gateway";
const BRIDGED: Record<Revision, NotHere> = {
  "2025-11-25": { "dns-rebinding-protection": BEHIND_THE_DOOR },
  "2026-07-28": { ...TASK_SCENARIOS, "dns-rebinding-protection": BEHIND_THE_DOOR },
};

/** The same with a command that only knows the handshake. */
const NO_QUESTIONS =
  "a server of the handshake asks while it works, and on standard streams nobody can tell which client it means";
const HANDSHAKE: Record<Revision, NotHere> = {
  "2025-11-25": BRIDGED["2025-11-25"],
  "2026-07-28": {
    ...BRIDGED["2026-07-28"],
    ...all(NO_QUESTIONS, [
      "input-required-result-basic-elicitation",
      "input-required-result-basic-sampling",
      "input-required-result-basic-list-roots",
      "input-required-result-request-state",
      "input-required-result-multiple-input-requests",
      "input-required-result-multi-round",
      "input-required-result-non-tool-request",
      "input-required-result-result-type",
      "input-required-result-tampered-state",
      "input-required-result-capability-check",
      "server-stateless:sep-2575-server-rejects-undeclared-capability",
      "server-stateless:sep-2575-missing-capability-http-400",
    ]),
  },
};

export const EXPECTED = { toolsOnly: TOOLS_ONLY, everything: EVERYTHING, bridged: BRIDGED, handshake: HANDSHAKE };

/** Scenarios that belong to no revision, and are not run. */
export const NOT_RUN: NotHere = all("an extension about skills, which no server here claims", [
  "sep-2640-skills-directory",
  "sep-2640-skills-enumeration",
  "sep-2640-skills-manifest",
]);

export function assertConforms(found: Map<string, Failure[]>, notHere: NotHere): void {
  const wrong = [...found].flatMap(([scenario, failures]) =>
    failures
      .filter(({ check }) => !(scenario in notHere) && !(`${scenario}:${check}` in notHere))
      .map(({ check, why }) => `${scenario}:${check} failed: ${why}`),
  );
  const stale = Object.keys(notHere).filter((name) => {
    const [scenario = "", check] = name.split(":");
    const failures = found.get(scenario) ?? [];
    return !failures.some((failure) => check === undefined || failure.check === check);
  });
  assert.deepEqual([...wrong, ...stale.map((name) => `${name} passed and is said to be impossible`)], []);
}
