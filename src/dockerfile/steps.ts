/**
 * The steps of one stage: the instructions that change files, with every variable replaced, and the configuration that
 * the others leave. Pure: the base image's configuration goes in, steps and the new configuration come out.
 */

import { posix } from "node:path";
import { ownValue } from "../lib/own-value.ts";
import type { BuildConfig } from "./config.ts";
import { type CopyStep, copyStep } from "./copy-step.ts";
import { healthcheckOf } from "./healthcheck.ts";
import { DockerfileRefused, shown } from "./refusal.ts";
import { type RunStep, runStep } from "./run-step.ts";
import { type Instruction, writtenAs } from "./source.ts";
import { argumentsOf, type Dockerfile, platformArgs } from "./stages.ts";
import { expand, jsonList, type Lookup, pairsOf, quotedWords, type Reading } from "./words.ts";

export type Step = RunStep | CopyStep | FolderStep;

/** WORKDIR: the folder is made when it is missing. */
export interface FolderStep {
  kind: "folder";
  line: number;
  /** As the Dockerfile has it, for the log. */
  text: string;
  path: string;
  /** Who owns a new folder; empty: root. */
  owner: string;
}

export interface StagePlan {
  steps: Step[];
  config: BuildConfig;
  /** Sentences about instructions that are kept in the image and have no effect on this platform. */
  notes: string[];
  /** Build arguments that the stage named. */
  usedArgs: string[];
}

export interface StageOptions {
  base: BuildConfig;
  args: Readonly<Record<string, string>>;
  architecture: string;
}

/** Arguments that a build may have without naming them: the ways out of a network. */
const PROXY_ARGS = ["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"].flatMap((name) => [
  name,
  name.toLowerCase(),
]);

/** Characters of all variables together: a command takes no more. */
const VARIABLES_MAX = 1024 * 1024;
/** Characters that all words of a stage become: a variable may hold another many times, and a word many variables. */
const EXPANDED_ALL_MAX = 4 * 1024 * 1024;

/** A stage as far as it has been read. */
export interface Progress {
  config: BuildConfig;
  /** Values of ARG so far. */
  args: Record<string, string>;
  steps: Step[];
  notes: string[];
  usedArgs: string[];
  /** Characters that words of the stage became. */
  expandedChars: number;
  /** Whether this stage has its own CMD: an ENTRYPOINT drops the one of the base image. */
  ownCmd: boolean;
}

export interface Surroundings {
  dockerfile: Dockerfile;
  /** Index of the stage. */
  index: number;
  options: StageOptions;
}

export function planStage(dockerfile: Dockerfile, index: number, options: StageOptions): StagePlan {
  const proxies = Object.fromEntries(Object.entries(options.args).filter(([name]) => PROXY_ARGS.includes(name)));
  const progress: Progress = {
    config: structuredClone(options.base),
    args: proxies,
    steps: [],
    notes: [],
    usedArgs: Object.keys(proxies),
    expandedChars: 0,
    ownCmd: false,
  };
  for (const instruction of dockerfile.stages[index]?.instructions ?? []) {
    const read = READERS[instruction.keyword];
    if (!read) throw new DockerfileRefused(instruction.line, refusalOf(instruction));
    const allowed = FLAGS[instruction.keyword] ?? [];
    const flag = instruction.flags.find(({ name }) => !allowed.includes(name));
    if (flag)
      throw new DockerfileRefused(
        instruction.line,
        `${instruction.keyword} with ${shown(`--${flag.name}`)} is not supported.`,
      );
    if (instruction.text === "")
      throw new DockerfileRefused(instruction.line, `${instruction.keyword} has no argument.`);
    read(instruction, progress, { dockerfile, index, options });
    const variables = [...Object.values(progress.config.env), ...Object.values(progress.args)];
    if (variables.reduce((sum, { length }) => sum + length, 0) > VARIABLES_MAX)
      throw new DockerfileRefused(instruction.line, "the variables become too long together.");
  }
  const { steps, config, notes, usedArgs } = progress;
  return { steps, config, notes, usedArgs };
}

const refusalOf = ({ keyword }: Instruction): string =>
  keyword === "ONBUILD" ? "'ONBUILD' is not supported." : `${shown(keyword)} is not an instruction.`;

const FLAGS: Record<string, string[]> = {
  RUN: ["mount", "network", "security"],
  COPY: ["from", "chown", "chmod", "link"],
  ADD: ["chown", "chmod", "link"],
  HEALTHCHECK: ["interval", "timeout", "start-period", "start-interval", "retries"],
};

type Reader = (instruction: Instruction, progress: Progress, around: Surroundings) => void;

const READERS: Record<string, Reader> = {
  ARG(instruction, progress, { dockerfile, options }) {
    const { globals, escapeChar } = dockerfile;
    const outer: Lookup = (name) =>
      valueIn([progress.config.env, progress.args, globals, platformArgs(options.architecture)], name);
    Object.assign(progress.args, argumentsOf(instruction, { lookup: outer, escapeChar, args: options.args }));
    progress.usedArgs.push(...quotedWords(instruction.text, escapeChar).map((word) => word.replace(/=[\s\S]*/, "")));
  },
  ENV(instruction, progress, around) {
    // All values of one instruction see the variables from before it.
    const pairs = pairsIn(instruction, progress, around);
    Object.assign(progress.config.env, pairs);
  },
  LABEL(instruction, progress, around) {
    Object.assign(progress.config.labels, pairsIn(instruction, progress, around));
  },
  MAINTAINER(instruction, progress) {
    progress.config.labels.maintainer = instruction.text;
  },
  WORKDIR(instruction, progress, around) {
    const { config, steps } = progress;
    const path = posix.resolve(config.workDir, expanded(instruction, progress, around));
    config.workDir = path;
    steps.push({ kind: "folder", line: instruction.line, text: writtenAs(instruction), path, owner: config.user });
  },
  USER(instruction, progress, around) {
    progress.config.user = expanded(instruction, progress, around);
  },
  SHELL({ text, line }, { config }) {
    const words = jsonList(text);
    if (!words || words.length === 0) throw new DockerfileRefused(line, `SHELL needs a JSON list, not ${shown(text)}.`);
    config.shell = words;
  },
  CMD({ text }, progress) {
    progress.config.cmd = commandOf(text, progress.config);
    progress.ownCmd = true;
  },
  ENTRYPOINT({ text }, progress) {
    progress.config.entrypoint = commandOf(text, progress.config);
    if (!progress.ownCmd) progress.config.cmd = null;
  },
  EXPOSE(instruction, progress, around) {
    const { config } = progress;
    for (const word of expanded(instruction, progress, around).split(/\s+/)) {
      const [, ports, protocol = "tcp"] = /^(\d{1,5}(?:-\d{1,5})?)(?:\/(tcp|udp))?$/i.exec(word) ?? [];
      if (ports === undefined) throw new DockerfileRefused(instruction.line, `${shown(word)} is not a port.`);
      const port = `${ports}/${protocol.toLowerCase()}`;
      if (!config.ports.includes(port)) config.ports.push(port);
    }
  },
  VOLUME(instruction, progress, around) {
    const words = jsonList(instruction.text) ?? instruction.text.split(/\s+/);
    const reading = readingOf(instruction, progress, around);
    progress.config.volumes.push(...words.map((word) => expand(word, reading)));
    progress.notes.push(
      withoutEffect(instruction, "its folders are part of the image; attach volumes to the workload"),
    );
  },
  STOPSIGNAL(instruction, progress, around) {
    progress.config.stopSignal = expanded(instruction, progress, around);
    progress.notes.push(withoutEffect(instruction, "workloads end with SIGTERM"));
  },
  HEALTHCHECK(instruction, progress) {
    progress.config.healthcheck = healthcheckOf(instruction, progress.config.shell);
    progress.notes.push(withoutEffect(instruction, "a workload is healthy when it listens on its port"));
  },
  RUN(instruction, progress, around) {
    progress.steps.push(runStep(instruction, progress, readingOf(instruction, progress, around)));
  },
  COPY(instruction, progress, around) {
    progress.steps.push(copyStep(instruction, progress.config, readingOf(instruction, progress, around)));
  },
  ADD(instruction, progress, around) {
    progress.steps.push(copyStep(instruction, progress.config, readingOf(instruction, progress, around)));
  },
};

/** The value in the first of these records that has the name. */
const valueIn = (records: readonly Readonly<Record<string, string>>[], name: string): string | undefined =>
  records.map((record) => ownValue(record, name)).find((value) => value !== undefined);

/** The values of ENV and ARG so far; ENV counts before ARG. */
function readingOf({ line }: Instruction, progress: Progress, { dockerfile }: Surroundings): Reading {
  const { config, args } = progress;
  const spend = (chars: number): void => {
    progress.expandedChars += chars;
    if (progress.expandedChars > EXPANDED_ALL_MAX)
      throw new DockerfileRefused(line, "the words of the stage become too long together.");
  };
  return { lookup: (name) => valueIn([config.env, args], name), escapeChar: dockerfile.escapeChar, line, spend };
}

const expanded = (instruction: Instruction, progress: Progress, around: Surroundings): string =>
  expand(instruction.text, readingOf(instruction, progress, around));

function pairsIn(instruction: Instruction, progress: Progress, around: Surroundings): Record<string, string> {
  const reading = readingOf(instruction, progress, around);
  const pairs = pairsOf(instruction.text, reading).map(([name, value]) => [
    expand(name, reading),
    expand(value, reading),
  ]);
  if (pairs.some(([name]) => name === "__proto__"))
    throw new DockerfileRefused(instruction.line, "'__proto__' is no name of a variable or a label.");
  return Object.fromEntries(pairs);
}

/** The JSON form as it stands, the shell form behind the shell. */
export const commandOf = (text: string, { shell }: Pick<BuildConfig, "shell">): string[] =>
  jsonList(text) ?? [...shell, text];

const withoutEffect = ({ line, keyword }: Instruction, why: string): string =>
  `Dockerfile line ${line}: ${keyword} is kept in the image and has no effect here: ${why}.`;
