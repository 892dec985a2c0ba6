/** The variables of a program that runs on this machine instead of on the platform: the same names, as docs/deploy.md lists them. */
import { dirname, join } from "node:path";
import type { Connection } from "../connection.ts";
import type { Env, Project } from "../project.ts";

export interface Place {
  connection: Connection;
  workspace: string;
  port: number;
}

type Shell = Readonly<Record<string, string | undefined>>;

/** Not for the program: they configure this command. */
const OWN_VARIABLES = /^(?:BERTH_.*|BL_API_KEY)$/;

/** The folder of the Node that Berth brings along, which runs workloads; the shell's own may be older. */
const BUNDLED_NODE = process.execPath.includes("/node_modules/") ? [dirname(process.execPath)] : [];

/** The platform gives a workload credentials of its own; here the program uses those of the person who runs it. */
export const localEnv = (project: Project, place: Place, bearer: string, shell: Shell): Record<string, string> => ({
  ...installEnv(project, place, shell),
  BL_API_KEY: bearer,
});

/** For the installation: packages run scripts of their own then, which get no credentials. */
export function installEnv(
  { name, kind, dir, spec }: Project,
  { connection, workspace, port }: Place,
  shell: Shell,
): Record<string, string> {
  const inherited = Object.entries(shell).filter(([key]) => !OWN_VARIABLES.test(key));
  const own = envsOf(spec).map((env) => [env.name, env.value]);
  return {
    ...(Object.fromEntries(inherited) as Record<string, string>),
    ...Object.fromEntries(own),
    PATH: [join(dir, "node_modules/.bin"), ...BUNDLED_NODE, shell.PATH ?? ""].join(":"),
    PYTHONPATH: join(dir, ".packages"),
    PYTHONUNBUFFERED: "1",
    HOST: "127.0.0.1",
    PORT: String(port),
    BL_WORKSPACE: workspace,
    BL_NAME: name,
    BL_TYPE: kind,
    BL_API_URL: `${connection.url}/v0`,
    BL_RUN_URL: connection.url,
  };
}

/** An application has its variables beside the image, all other kinds have them in `runtime`. */
function envsOf(spec: Record<string, unknown>): readonly Env[] {
  const { envs } = (spec.runtime ?? spec) as { envs?: readonly Env[] };
  return envs ?? [];
}
