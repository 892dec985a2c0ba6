/**
 * Names of the base image, used alone or after `brand/` or `service/`. Some set variables of their own, among them
 * `BERTH_SERVE_{port}`: the program that the daemon starts when a client first connects to that port.
 */

const CODE_INTERPRETER = "code-interpreter";
/** The ports that clients of code interpreters use. */
export const INTERPRETER_PORTS = [8888, 49999];

const INTERPRETER_ENV = Object.fromEntries(INTERPRETER_PORTS.map((port) => [`BERTH_SERVE_${port}`, CODE_INTERPRETER]));

const ENV_BY_NAME: Readonly<Record<string, Record<string, string>>> = {
  "base-image": {},
  node: {},
  "py-app": {},
  "ts-app": {},
  [CODE_INTERPRETER]: INTERPRETER_ENV,
  "jupyter-server": INTERPRETER_ENV,
};

export const BASE_NAMES: readonly string[] = Object.keys(ENV_BY_NAME);

/**
 * Whether a name means the base image where an engine finds images by itself. Names without a prefix that the base
 * image shares with an image of Docker Hub, such as `node`, mean that other image there.
 */
export function isBaseImage(name: string, brand: string): boolean {
  const env = baseEnv(name, brand);
  return env !== null && (name.includes("/") || /^base-image\b/.test(name) || Object.keys(env).length > 0);
}

/** The variables of the base image by that name; null when the name is none of the base image. */
export function baseEnv(name: string, brand: string): Record<string, string> | null {
  const [, prefix, plain = ""] = /^(?:([^/]+)\/)?([^/:]+)(?::latest)?$/.exec(name) ?? [];
  const isPlatforms = prefix === undefined || prefix === brand || prefix === "service";
  return isPlatforms && Object.hasOwn(ENV_BY_NAME, plain) ? (ENV_BY_NAME[plain] ?? null) : null;
}
