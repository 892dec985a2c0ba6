/** Between the configuration of a build and the words that images of registries use. */
import { type BuildConfig, DEFAULT_PATH, EMPTY_CONFIG, type Healthcheck } from "../../dockerfile/config.ts";
import type { Image, ImageDocument } from "../capabilities/images.ts";

export function documentOf(config: BuildConfig): ImageDocument {
  const { env, workDir, user, entrypoint, cmd, shell, ports, labels, volumes, stopSignal, healthcheck } = config;
  return {
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    WorkingDir: workDir,
    User: user,
    Entrypoint: entrypoint,
    Cmd: cmd,
    ...(shell.join("\0") === EMPTY_CONFIG.shell.join("\0") ? {} : { Shell: shell }),
    ...(ports.length > 0 ? { ExposedPorts: namesAsKeys(ports) } : {}),
    ...(Object.keys(labels).length > 0 ? { Labels: labels } : {}),
    ...(volumes.length > 0 ? { Volumes: namesAsKeys(volumes) } : {}),
    ...(stopSignal === null ? {} : { StopSignal: stopSignal }),
    ...(healthcheck === null ? {} : { Healthcheck: healthcheckDocument(healthcheck) }),
  };
}

const namesAsKeys = (names: readonly string[]): Record<string, object> =>
  Object.fromEntries(names.map((name) => [name, {}]));

const HEALTHCHECK_WORDS: [keyof Healthcheck, string][] = [
  ["test", "Test"],
  ["interval", "Interval"],
  ["timeout", "Timeout"],
  ["startPeriod", "StartPeriod"],
  ["startInterval", "StartInterval"],
  ["retries", "Retries"],
];

const healthcheckDocument = (check: Healthcheck): Record<string, unknown> =>
  Object.fromEntries(
    HEALTHCHECK_WORDS.flatMap(([own, word]) => (check[own] === undefined ? [] : [[word, check[own]]])),
  );

/** What a stage on this image starts with. Volumes and checks of a base image have no effect and are not taken over. */
export function configOf({ document, env, workDir, argv }: Image): BuildConfig {
  const { Entrypoint = null, Cmd = null, User, Shell, ExposedPorts, Labels } = document ?? { Cmd: argv };
  return {
    ...EMPTY_CONFIG,
    env: { PATH: DEFAULT_PATH, ...env },
    workDir: workDir || "/",
    user: User ?? "",
    entrypoint: Entrypoint,
    cmd: Cmd,
    shell: Shell && Shell.length > 0 ? Shell : EMPTY_CONFIG.shell,
    ports: Object.keys(ExposedPorts ?? {}),
    labels: { ...Labels },
  };
}
