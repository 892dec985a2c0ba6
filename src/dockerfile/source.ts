/**
 * The instructions of a Dockerfile as text: continued lines joined, comments left out, flags and here-documents taken
 * apart. `dockerfile-ast` finds where each instruction begins and ends; nothing here knows what an instruction means.
 */
import { createRequire } from "node:module";
import type { ModifiableInstruction, Instruction as Node } from "dockerfile-ast";
import { DockerfileRefused, shown } from "./refusal.ts";

export interface Instruction {
  /** Counted from 1. */
  line: number;
  /** In capitals. */
  keyword: string;
  flags: Flag[];
  /** The arguments in one line. */
  text: string;
  heredocs: Heredoc[];
}

export interface Flag {
  name: string;
  value: string;
}

export interface Heredoc {
  name: string;
  content: string;
  /** Variables in the content are replaced, unless the name was quoted. */
  expands: boolean;
}

export interface Source {
  instructions: Instruction[];
  /** The character that continues a line and escapes others. */
  escapeChar: string;
}

/** Longest Dockerfile. Real ones have a few kilobytes; parsing 120 KB of here-documents takes a second. */
export const DOCKERFILE_BYTES_MAX = 64 * 1024;
const INSTRUCTIONS_MAX = 1000;
/** Keywords whose arguments may be here-documents. */
const WITH_HEREDOCS = ["RUN", "COPY", "ADD"];

/** Loaded with the first Dockerfile: 37 modules, and few servers and commands read one. */
const parser = (): typeof import("dockerfile-ast") =>
  createRequire(import.meta.url)("dockerfile-ast") as typeof import("dockerfile-ast");

export function readSource(text: string): Source {
  if (Buffer.byteLength(text) > DOCKERFILE_BYTES_MAX)
    throw new DockerfileRefused(1, `the file has more than ${DOCKERFILE_BYTES_MAX / 1024} KB.`);
  if (text.includes("\0")) throw new DockerfileRefused(1, "the file has a null byte.");
  const parsed = parser().DockerfileParser.parse(text.replaceAll("\r\n", "\n").replace(/^\ufeff/, ""));
  const escapeChar = parsed.getEscapeCharacter();
  const nodes = parsed.getInstructions();
  if (nodes.length > INSTRUCTIONS_MAX)
    throw new DockerfileRefused(1, `the file has more than ${INSTRUCTIONS_MAX} instructions.`);
  return { instructions: nodes.map((node) => instructionOf(node, escapeChar)), escapeChar };
}

function instructionOf(node: Node, escapeChar: string): Instruction {
  const line = node.getRange().start.line + 1;
  const keyword = node.getKeyword();
  const lines = (node.getRawArgumentsContent() ?? "").split("\n");
  const { text, rest } = firstLine(lines, escapeChar);
  const heredocs = WITH_HEREDOCS.includes(keyword) ? heredocsIn(text, rest, line) : { heredocs: [], left: rest };
  const stray = heredocs.left.find((each) => each.trim() !== "");
  if (stray !== undefined) throw new DockerfileRefused(line, `${shown(stray)} belongs to no instruction.`);
  return { line, keyword, flags: flagsOf(node), text, heredocs: heredocs.heredocs };
}

const isModifiable = (node: Node): node is ModifiableInstruction => "getFlags" in node;

const flagsOf = (node: Node): Flag[] =>
  isModifiable(node)
    ? node.getFlags().map((flag) => ({ name: flag.getName(), value: unquoted(flag.getValue() ?? "") }))
    : [];

const unquoted = (value: string): string => /^"(.*)"$/s.exec(value)?.[1] ?? value;

/** Joins continued lines. Comment lines and empty lines between them are left out. */
function firstLine(lines: readonly string[], escapeChar: string): { text: string; rest: string[] } {
  let text = "";
  for (const [index, line] of lines.entries()) {
    const isSkipped = index > 0 && (/^\s*#/.test(line) || line.trim() === "");
    if (isSkipped) continue;
    const bare = line.trimEnd();
    if (!bare.endsWith(escapeChar)) return { text: (text + line).trim(), rest: lines.slice(index + 1) };
    text += bare.slice(0, -1);
  }
  return { text: text.trim(), rest: [] };
}

const HEREDOC = /<<(-?)(["']?)([A-Za-z_][\w.]*)\2/g;

/** The contents come in the order of the names. */
function heredocsIn(text: string, lines: readonly string[], line: number): { heredocs: Heredoc[]; left: string[] } {
  let left = [...lines];
  const heredocs: Heredoc[] = [];
  // With nothing below, `<<` is an operator of the shell in one line, such as an arithmetic shift.
  if (lines.length === 0) return { heredocs, left };
  for (const [, dash = "", quote = "", name = ""] of text.matchAll(HEREDOC)) {
    const plain = dash === "" ? left : left.map((each) => each.replace(/^\t+/, ""));
    const end = plain.indexOf(name);
    if (end < 0) throw new DockerfileRefused(line, `the here-document ${shown(name)} has no end.`);
    heredocs.push({
      name,
      content: plain
        .slice(0, end)
        .map((each) => `${each}\n`)
        .join(""),
      expands: quote === "",
    });
    left = left.slice(end + 1);
  }
  return { heredocs, left };
}

/** The instruction in one line, for logs. */
export const writtenAs = ({ keyword, flags, text }: Pick<Instruction, "keyword" | "flags" | "text">): string =>
  [keyword, ...flags.map(({ name, value }) => `--${name}${value === "" ? "" : `=${value}`}`), text].join(" ");
