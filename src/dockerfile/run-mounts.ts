/** `RUN --mount=type=bind|cache|secret`: what a command finds at a path and no layer keeps. */
import { posix } from "node:path";
import { DockerfileRefused, shown } from "./refusal.ts";
import { sourcePath } from "./source-path.ts";

export type RunMount = BindMount | CacheMount | SecretMount;

/** Files of the context, a stage or an image; what the command changes there is lost. */
export interface BindMount {
  type: "bind";
  /** Null: the build's context. */
  from: string | null;
  /** Below the context or the root of `from`. */
  source: string;
  target: string;
}

/** A folder that stays from build to build of a workspace. */
export interface CacheMount {
  type: "cache";
  id: string;
  target: string;
}

export interface SecretMount {
  type: "secret";
  id: string;
  /** Path of the file; null when only a variable is wanted. */
  target: string | null;
  /** Name of the variable with its value. */
  env: string | null;
  required: boolean;
}

/** Folder of secrets whose mount names no other place. */
export const SECRETS_PATH = "/run/secrets";

/** Options of each type, by the names that they may have. */
const OPTIONS: Record<RunMount["type"], string[]> = {
  bind: ["target", "source", "from", "rw", "readonly"],
  cache: ["target", "id", "sharing", "readonly", "mode"],
  secret: ["target", "id", "required", "env", "mode", "uid", "gid"],
};
const ALIASES: Record<string, string> = {
  dst: "target",
  destination: "target",
  src: "source",
  ro: "readonly",
  readwrite: "rw",
};

export function runMount(value: string, workDir: string, line: number): RunMount {
  const options = new Map(
    value.split(",").map((each): [string, string] => {
      const equals = each.indexOf("=");
      const [name, text] = equals < 0 ? [each, "true"] : [each.slice(0, equals), each.slice(equals + 1)];
      return [ALIASES[name] ?? name, text];
    }),
  );
  const type = options.get("type") ?? "bind";
  if (type !== "bind" && type !== "cache" && type !== "secret")
    throw new DockerfileRefused(line, `a mount of type ${shown(type)} is not supported; bind, cache and secret are.`);
  const unknown = [...options.keys()].find((name) => name !== "type" && !OPTIONS[type].includes(name));
  if (unknown !== undefined)
    throw new DockerfileRefused(line, `a mount of type ${type} has no option ${shown(unknown)} here.`);
  const given = options.get("target");
  const target = given === undefined ? null : posix.resolve(workDir, given);
  if (type === "secret") {
    const id = options.get("id") ?? (target === null ? undefined : posix.basename(target));
    if (!id || !/^[\w.-]{1,128}$/.test(id)) throw new DockerfileRefused(line, `${shown(value)} names no secret.`);
    const env = options.get("env") ?? null;
    if (env !== null && !/^[A-Za-z_]\w*$/.test(env))
      throw new DockerfileRefused(line, `${shown(env)} is no name of a variable.`);
    if (target !== null && posix.dirname(target) !== SECRETS_PATH)
      throw new DockerfileRefused(
        line,
        `the target ${shown(target)} of a secret is not supported: secrets are in ${SECRETS_PATH}; use env=NAME, or a link to that file.`,
      );
    const file = target ?? (env === null ? `${SECRETS_PATH}/${id}` : null);
    return { type, id, target: file, env, required: ["true", "1", ""].includes(options.get("required") ?? "false") };
  }
  if (target === null || target === "/") throw new DockerfileRefused(line, `the mount ${shown(value)} needs a target.`);
  if (type === "cache") return { type, id: options.get("id") ?? target, target };
  const from = options.get("from") ?? null;
  return { type, from, source: `/${sourcePath(options.get("source") ?? "/", from, line)}`, target };
}
