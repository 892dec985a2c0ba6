/** The stages of a Dockerfile, before anything is known of the images that they stand on. */
import { ownValue } from "../lib/own-value.ts";
import { DockerfileRefused, shown } from "./refusal.ts";
import { type Instruction, readSource } from "./source.ts";
import { expand, type Lookup, pairsOf, wordsOf } from "./words.ts";

export interface Dockerfile {
  stages: Stage[];
  /** Index of the stage that becomes the image. */
  target: number;
  /** Arguments from before the first FROM, which a stage takes over by naming them. */
  globals: Record<string, string>;
  escapeChar: string;
}

export interface Stage {
  line: number;
  name: string | null;
  from: StageBase;
  instructions: Instruction[];
}

/** The index of an earlier stage, or the name of an image. */
export type StageBase = { stage: number } | { image: string } | "scratch";

export interface DockerfileOptions {
  /** `--build-arg` */
  args: Readonly<Record<string, string>>;
  /** Name or number of a stage. Default: the last. */
  target?: string | undefined;
  /** `amd64` or `arm64`, as registries say it. */
  architecture: string;
}

const STAGES_MAX = 50;

export function readDockerfile(text: string, options: DockerfileOptions): Dockerfile {
  const { instructions, escapeChar } = readSource(text);
  const platform = platformArgs(options.architecture);
  const globals: Record<string, string> = {};
  const stages: Stage[] = [];
  const lookup: Lookup = (name) => ownValue(globals, name) ?? ownValue(platform, name);
  for (const instruction of instructions) {
    const { line, keyword } = instruction;
    const stage = stages.at(-1);
    if (keyword === "FROM") {
      if (stages.length >= STAGES_MAX) throw new DockerfileRefused(line, `there are more than ${STAGES_MAX} stages.`);
      stages.push(stageOf(instruction, stages, { lookup, escapeChar, architecture: options.architecture }));
    } else if (stage) stage.instructions.push(instruction);
    else if (keyword === "ARG")
      Object.assign(globals, argumentsOf(instruction, { lookup, escapeChar, args: options.args }));
    else throw new DockerfileRefused(line, `${shown(keyword)} comes before the first FROM.`);
  }
  if (stages.length === 0) throw new DockerfileRefused(1, "there is no FROM.");
  return { stages, target: targetOf(stages, options.target), globals, escapeChar };
}

/** The variables that every Dockerfile may name with ARG. */
export const platformArgs = (architecture: string): Record<string, string> => ({
  TARGETPLATFORM: `linux/${architecture}`,
  TARGETOS: "linux",
  TARGETARCH: architecture,
  BUILDPLATFORM: `linux/${architecture}`,
  BUILDOS: "linux",
  BUILDARCH: architecture,
});

/** Values of `ARG NAME`, `ARG NAME=default`; absent without a value. */
export function argumentsOf(
  { text, line }: Instruction,
  { lookup, escapeChar, args }: { lookup: Lookup; escapeChar: string; args: Readonly<Record<string, string>> },
): Record<string, string> {
  const values: Record<string, string> = {};
  for (const word of text.includes("=")
    ? pairsOf(text, { escapeChar, line }).map(([name, value]) => `${name}=${value}`)
    : wordsOf(text)) {
    const [, name = "", fallback] = /^([A-Za-z_]\w*)(?:=([\s\S]*))?$/.exec(word) ?? [];
    if (name === "" || name === "__proto__")
      throw new DockerfileRefused(line, `${shown(word)} is no name of an argument.`);
    const value =
      ownValue(args, name) ?? (fallback === undefined ? lookup(name) : expand(fallback, { lookup, escapeChar, line }));
    if (value !== undefined) values[name] = value;
  }
  return values;
}

function stageOf(
  instruction: Instruction,
  earlier: readonly Stage[],
  { lookup, escapeChar, architecture }: { lookup: Lookup; escapeChar: string; architecture: string },
): Stage {
  const { line, text, flags } = instruction;
  const read = (word: string): string => expand(word, { lookup, escapeChar, line });
  for (const { name, value } of flags) {
    if (name !== "platform") throw new DockerfileRefused(line, `FROM has no flag ${shown(`--${name}`)}.`);
    const [os, machine] = read(value).split("/");
    if (os !== "linux" || machine !== architecture)
      throw new DockerfileRefused(
        line,
        `the platform ${shown(read(value))} is not this machine's, linux/${architecture}.`,
      );
  }
  const [image = "", as, name, ...rest] = wordsOf(text);
  const isWhole =
    image !== "" && rest.length === 0 && (as === undefined || (as.toUpperCase() === "AS" && name !== undefined));
  if (!isWhole) throw new DockerfileRefused(line, `${shown(text)} is not IMAGE [AS NAME].`);
  if (name !== undefined && !/^[a-z][\w.-]*$/i.test(name))
    throw new DockerfileRefused(line, `${shown(name)} is no name of a stage.`);
  const from = read(image);
  if (from === "") throw new DockerfileRefused(line, `${shown(image)} stands for no image.`);
  const stage = earlier.findLastIndex((each) => each.name === from.toLowerCase());
  const base: StageBase = stage >= 0 ? { stage } : from === "scratch" ? "scratch" : { image: from };
  return { line, name: name?.toLowerCase() ?? null, from: base, instructions: [] };
}

function targetOf(stages: readonly Stage[], target: string | undefined): number {
  if (target === undefined || target === "") return stages.length - 1;
  const found = stages.findLastIndex(({ name }, index) => name === target.toLowerCase() || String(index) === target);
  if (found < 0) throw new DockerfileRefused(1, `there is no stage ${shown(target)}.`);
  return found;
}

/** The stages that the target needs, in the order of the file. `--from` may name a stage by its name or number. */
export function neededStages({ stages, target }: Pick<Dockerfile, "stages" | "target">): number[] {
  const needed = new Set<number>();
  const visit = (index: number): void => {
    const stage = stages[index];
    if (!stage || needed.has(index)) return;
    needed.add(index);
    if (typeof stage.from === "object" && "stage" in stage.from) visit(stage.from.stage);
    for (const { flags } of stage.instructions)
      for (const from of flags.flatMap(fromIn)) {
        const found = stageNamed(stages.slice(0, index), from);
        if (found !== null) visit(found);
      }
  };
  visit(target);
  return [...needed].sort((a, b) => a - b);
}

const fromIn = ({ name, value }: { name: string; value: string }): string[] => {
  if (name === "from") return [value];
  const from = name === "mount" ? /(?:^|,)from=([^,]+)/.exec(value)?.[1] : undefined;
  return from === undefined ? [] : [from];
};

export function stageNamed(earlier: readonly Stage[], name: string): number | null {
  const found = earlier.findLastIndex((stage, index) => stage.name === name.toLowerCase() || String(index) === name);
  return found < 0 ? null : found;
}
