/** The kernels that clients can start, one for each language of the interpreter. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ApiError } from "../../http/api-error.ts";
import { LANGUAGES, type Language } from "../languages.ts";
import { PROTOCOL_VERSION } from "./message.ts";

const VERSION_WAIT_MS = 10_000;

/** What notebooks know about a language. */
interface Notebook {
  /** The name of the kernel. */
  kernel: string;
  displayName: string;
  mediaType: string;
  extension: string;
}

const NOTEBOOKS: Readonly<Record<string, Notebook>> = {
  python: { kernel: "python3", displayName: "Python 3", mediaType: "text/x-python", extension: ".py" },
  javascript: { kernel: "javascript", displayName: "JavaScript", mediaType: "text/javascript", extension: ".js" },
  typescript: { kernel: "typescript", displayName: "TypeScript", mediaType: "text/x-typescript", extension: ".ts" },
};

function notebookOf({ name }: Language): Notebook {
  const notebook = NOTEBOOKS[name];
  if (!notebook) throw new Error(`The language ${name} has no kernel.`);
  return notebook;
}

export const kernelNameOf = (language: Language): string => notebookOf(language).kernel;

export function allSpecs(): Record<string, unknown> {
  const specs = LANGUAGES.map((language) => [kernelNameOf(language), specOf(language)]);
  return { default: NOTEBOOKS.python?.kernel, kernelspecs: Object.fromEntries(specs) };
}

export function specNamed(name: string): Record<string, unknown> {
  const language = LANGUAGES.find((each) => kernelNameOf(each) === name);
  if (!language) throw new ApiError(404, `There is no kernel ${JSON.stringify(name)}.`);
  return specOf(language);
}

function specOf(language: Language): Record<string, unknown> {
  const { kernel, displayName } = notebookOf(language);
  return {
    name: kernel,
    spec: {
      ...{ display_name: displayName, language: language.name, argv: language.argv.slice(0, 1) },
      ...{ env: {}, interrupt_mode: "message", metadata: {} },
    },
    resources: {},
  };
}

const versions = new Map<string, Promise<string>>();

/** The content of a `kernel_info_reply`. */
export async function kernelInfo(language: Language): Promise<Record<string, unknown>> {
  const { displayName, mediaType, extension } = notebookOf(language);
  const [program = ""] = language.argv;
  const asked = versions.get(program) ?? versionOf(program);
  versions.set(program, asked);
  const version = await asked;
  return {
    ...{ status: "ok", protocol_version: PROTOCOL_VERSION, implementation: "berth", implementation_version: version },
    language_info: { name: language.name, version, mimetype: mediaType, file_extension: extension },
    ...{ banner: `${displayName} ${version}`, debugger: false, help_links: [] },
  };
}

/** The version that a program tells about itself; "unknown" for one that does not start. */
async function versionOf(program: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, ["--version"], { timeout: VERSION_WAIT_MS });
    return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? "unknown";
  } catch {
    return "unknown";
  }
}
