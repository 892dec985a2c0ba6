/** RUN: a command whose changes become a layer. */
import type { BuildConfig } from "./config.ts";
import { DockerfileRefused, shown } from "./refusal.ts";
import { type RunMount, runMount } from "./run-mounts.ts";
import { type Heredoc, type Instruction, writtenAs } from "./source.ts";
import { expand, jsonList, type Reading } from "./words.ts";

export interface RunStep {
  kind: "run";
  line: number;
  text: string;
  argv: string[];
  env: Record<string, string>;
  workDir: string;
  /** Empty: root. */
  user: string;
  mounts: RunMount[];
  /** false: `--network=none` */
  network: boolean;
}

export function runStep(
  instruction: Instruction,
  { config, args }: { config: BuildConfig; args: Record<string, string> },
  reading: Reading,
): RunStep {
  const { line, text, flags, heredocs } = instruction;
  const { workDir, user, env } = config;
  const mounts: RunMount[] = [];
  let network = true;
  for (const { name, value } of flags) {
    const given = expand(value, reading);
    if (name === "mount") mounts.push(runMount(given, workDir, line));
    else if (name === "network" && (given === "none" || given === "default")) network = given === "default";
    else if (name !== "security" || given !== "sandbox")
      throw new DockerfileRefused(line, `RUN with ${shown(`--${name}=${given}`)} is not supported.`);
  }
  const argv = heredocs.length > 0 ? scriptOf(text, heredocs, config) : (jsonList(text) ?? [...config.shell, text]);
  return {
    kind: "run",
    line,
    text: writtenAs(instruction),
    argv,
    env: { ...args, ...env },
    workDir,
    user,
    mounts,
    network,
  };
}

/** A here-document alone is the script; otherwise the shell reads the here-documents itself. */
function scriptOf(text: string, heredocs: readonly Heredoc[], { shell }: BuildConfig): string[] {
  const [only] = heredocs;
  const isAlone = heredocs.length === 1 && /^<<-?(["']?)[\w.]+\1$/.test(text);
  if (!only || !isAlone) {
    const bodies = heredocs.map(({ name, content }) => `${content}${name}\n`).join("");
    return [...shell, `${text}\n${bodies}`];
  }
  return [...shell, only.content.startsWith("#!") ? asProgram(only.content) : only.content];
}

/** A script that names its own interpreter has to be a file. */
function asProgram(content: string): string {
  const end = "END_OF_BUILD_SCRIPT";
  const text = content.endsWith("\n") ? content : `${content}\n`;
  return `script=$(mktemp) && cat > "$script" <<'${end}'\n${text}${end}\nchmod 700 "$script" && "$script"; code=$?; rm -f "$script"; exit $code`;
}
