/** COPY and ADD: files of the context, a stage or an image that become a layer. */
import { posix } from "node:path";
import type { BuildConfig } from "./config.ts";
import { DockerfileRefused, shown } from "./refusal.ts";
import { type Instruction, writtenAs } from "./source.ts";
import { sourcePath } from "./source-path.ts";
import { expand, expandContent, jsonList, type Reading, wordsOf } from "./words.ts";

export interface CopyStep {
  kind: "copy";
  line: number;
  text: string;
  /** Name or number of a stage, or an image; null: the build's context. */
  from: string | null;
  /** Paths or patterns below the context or the root of `from`, without a slash at their start. */
  sources: string[];
  /** Files written in the Dockerfile itself. */
  files: { name: string; content: string }[];
  /** Absolute. */
  target: string;
  /** The target is a folder, whether or not it exists. */
  intoFolder: boolean;
  /** `user:group`; null: root, or the owners of the files of `from`. */
  owner: string | null;
  mode: number | null;
  /** ADD: archives among the sources are unpacked. */
  unpacks: boolean;
}

const REMOTE = /^(https?:\/\/|git@|git:\/\/|ssh:\/\/|ftp:\/\/)/i;

export function copyStep(instruction: Instruction, config: BuildConfig, reading: Reading): CopyStep {
  const { line, keyword, text, flags, heredocs } = instruction;
  const flag = (name: string): string | null => {
    const found = flags.findLast((each) => each.name === name);
    return found === undefined ? null : expand(found.value, reading);
  };
  const words = (jsonList(text) ?? wordsOf(text)).map((word) => expand(word, reading));
  const [target, sources] = [words.at(-1) ?? "", words.slice(0, -1)];
  if (sources.length === 0 || target === "")
    throw new DockerfileRefused(line, `${keyword} needs a source and a target.`);
  const remote = sources.find((source) => REMOTE.test(source));
  if (remote !== undefined)
    throw new DockerfileRefused(line, `${keyword} of ${shown(remote)} is not supported; use RUN with curl or git.`);
  const from = flag("from");
  if (from === "") throw new DockerfileRefused(line, "--from names no stage.");
  const paths = sources
    .filter((source) => !isHeredoc(source, instruction))
    .map((source) => sourcePath(source, from, line));
  const files = heredocs.map(({ name, content, expands }) => ({
    name,
    content: expands ? expandContent(content, reading) : content,
  }));
  return {
    kind: "copy",
    line,
    text: writtenAs(instruction),
    from,
    sources: paths,
    files,
    target: posix.resolve(config.workDir, target),
    intoFolder: /(^|\/)\.?$/.test(target) || sources.length > 1,
    owner: ownerOf(flag("chown"), line),
    mode: modeOf(flag("chmod"), line),
    unpacks: keyword === "ADD",
  };
}

const isHeredoc = (word: string, { heredocs }: Instruction): boolean =>
  heredocs.length > 0 &&
  heredocs.some(({ name }) => word.replace(/^<<-?/, "").replace(/["']/g, "") === name && word.startsWith("<<"));

function ownerOf(chown: string | null, line: number): string | null {
  if (chown === null) return null;
  if (!/^[\w.-]+(:[\w.-]+)?$/.test(chown)) throw new DockerfileRefused(line, `${shown(chown)} is not USER[:GROUP].`);
  return chown;
}

function modeOf(chmod: string | null, line: number): number | null {
  if (chmod === null) return null;
  if (!/^[0-7]{3,4}$/.test(chmod))
    throw new DockerfileRefused(line, `the mode ${shown(chmod)} is not supported; use three or four octal digits.`);
  return Number.parseInt(chmod, 8);
}
