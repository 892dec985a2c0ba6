/** A template of E2B as a Dockerfile, which the platform builds. Pure. */
import { unsupported } from "../refusal.ts";
import { imageOfTemplate } from "../sandbox-wire.ts";

export interface Step {
  type?: unknown;
  args?: unknown;
  force?: unknown;
  filesHash?: unknown;
}

/** The body of E2B's start of a build. */
export interface Template {
  fromImage?: unknown;
  fromTemplate?: unknown;
  fromImageRegistry?: unknown;
  startCmd?: unknown;
  readyCmd?: unknown;
  steps?: unknown;
  force?: unknown;
}

export interface Planned {
  dockerfile: string;
  /** Hashes of the files that the steps copy; the archive has each as `files-{index}`. */
  files: string[];
}

/** What E2B's clients stand on unless told otherwise. */
const E2B_BASE = /^(?:docker\.io\/)?e2bdev\/base(?::latest)?$/;
const BASE = "service/base-image:latest";
const USER_DEFAULT = "root";

/** A file of the archive is what the client has sent for a step: a tar, compressed or not. */
export const fileName = (index: number): string => `files-${index}`;

export function planOf(template: Template): Planned {
  if (template.startCmd) throw unsupported("A start command of a template (`setStartCmd`)");
  if (template.readyCmd) throw unsupported("A ready command of a template (`setReadyCmd`)");
  const steps = Array.isArray(template.steps) ? (template.steps as Step[]) : [];
  const files: string[] = [];
  const lines: string[] = [];
  let user = USER_DEFAULT;
  for (const { type, args: given, filesHash } of steps) {
    const args = Array.isArray(given) ? given.map(String) : [];
    const [first = "", second = ""] = args;
    switch (type) {
      case "RUN":
        // In the exec form, so that a command of several lines stays one instruction.
        lines.push(...as(second || user, user, `RUN ${JSON.stringify(["/bin/sh", "-c", first])}`));
        break;
      case "ENV":
        for (let at = 0; at < args.length; at += 2) lines.push(`ENV ${word(args[at])}=${quoted(args[at + 1])}`);
        break;
      case "WORKDIR":
        lines.push(`WORKDIR ${quoted(first)}`);
        break;
      case "USER":
        user = first;
        lines.push(`USER ${word(user)}`);
        break;
      case "COPY":
        lines.push(copied(args, files.push(String(filesHash ?? "")) - 1));
        break;
      default:
        throw unsupported(`A step ${JSON.stringify(type)?.slice(0, 100)} of a template`);
    }
  }
  // A stage for each: their files are unpacked beside each other otherwise.
  const stages = files.map((_, index) => `FROM scratch AS ${fileName(index)}\nADD ${fileName(index)} /\n`);
  return { dockerfile: `${stages.join("")}FROM ${baseOf(template)}\n${lines.join("\n")}\n`, files };
}

function baseOf({ fromImage, fromTemplate }: Template): string {
  if (typeof fromTemplate === "string" && fromTemplate !== "") return word(imageOfTemplate(fromTemplate) ?? BASE);
  if (typeof fromImage !== "string" || fromImage === "" || E2B_BASE.test(fromImage)) return BASE;
  return word(fromImage);
}

const as = (user: string, before: string, line: string): string[] =>
  user === before ? [line] : [`USER ${word(user)}`, line, `USER ${word(before)}`];

function copied([source = "", target = "", owner = "", mode = ""]: string[], index: number): string {
  const options = [
    `--from=${fileName(index)}`,
    ...(owner === "" ? [] : [`--chown=${word(owner)}`]),
    ...(mode === "" ? [] : [`--chmod=${word(mode)}`]),
  ];
  const from = `/${source.replace(/^(?:\.?\/)+/, "")}`;
  return `COPY ${options.join(" ")} ${JSON.stringify([literal(from === "/." ? "/" : from), literal(target)])}`;
}

/** A name that needs no quotes. */
function word(text = ""): string {
  if (!/^[\w.:/@+-]+$/.test(text)) throw unsupported(`${JSON.stringify(text.slice(0, 100))} in a step of a template`);
  return text;
}

/** Text in which nothing is a variable. */
const literal = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("$", "\\$");

function quoted(text = ""): string {
  if (/[\r\n\0]/.test(text)) throw unsupported("A variable or folder of several lines in a template");
  return `"${literal(text).replaceAll('"', '\\"')}"`;
}
