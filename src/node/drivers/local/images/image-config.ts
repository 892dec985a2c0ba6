/** The configuration of an image: what runs in it, where, and as whom. It is untrusted and checked when it is read. */
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import type { Image, ImageUser } from "../../../capabilities/images.ts";
import { imageUser } from "../../common/image-user.ts";
import { accountFile } from "./account-file.ts";

const schema = z.object({
  config: z
    .object({
      Env: z.array(z.string()).max(10_000).nullish(),
      WorkingDir: z.string().nullish(),
      Entrypoint: z.array(z.string()).nullish(),
      Cmd: z.array(z.string()).nullish(),
      User: z.string().nullish(),
      Shell: z.array(z.string()).nullish(),
      ExposedPorts: z.record(z.string(), z.unknown()).nullish(),
      Labels: z.record(z.string(), z.string()).nullish().catch(null),
      Volumes: z.record(z.string(), z.unknown()).nullish(),
      StopSignal: z.string().nullish(),
      Healthcheck: z.record(z.string(), z.unknown()).nullish(),
      OnBuild: z.array(z.string()).nullish(),
    })
    .nullish(),
  architecture: z.string().nullish(),
  rootfs: z.object({ diff_ids: z.array(z.string()).nullish() }).nullish(),
});

export type ImageConfig = z.infer<typeof schema>;

/** The architecture's name in images. */
const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;

export function parseConfig(bytes: Buffer): ImageConfig {
  const config = schema.parse(parseJson(bytes));
  const { architecture } = config;
  if (architecture && architecture !== ARCHITECTURE)
    throw refused(`it is for ${architecture.slice(0, 50)}, this machine is ${ARCHITECTURE}`);
  return config;
}

/** Whether a manifest of an index is for this machine. */
export const isForHere = (architecture: string | undefined): boolean => architecture === ARCHITECTURE;

/** `layers` are folders, topmost first. */
export function runningOf(
  { config }: ImageConfig,
  layers: readonly string[],
): Pick<Image, "env" | "workDir" | "argv" | "user" | "document"> {
  const user = userOf(config?.User ?? "", layers);
  return {
    env: environmentOf(config?.Env ?? []),
    workDir: config?.WorkingDir || "/",
    argv: [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])],
    ...(user ? { user } : {}),
    ...(config ? { document: config } : {}),
  };
}

function environmentOf(lines: string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const line of lines) {
    const equals = line.indexOf("=");
    if (equals > 0 && !line.includes("\0")) env[line.slice(0, equals)] = line.slice(equals + 1);
  }
  return env;
}

function userOf(spec: string, layers: readonly string[]): ImageUser | undefined {
  try {
    return imageUser(spec, (file) => accountFile(layers, file));
  } catch (error) {
    throw refused(error instanceof Error ? error.message : String(error));
  }
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw refused("its description is not JSON", error);
  }
}

export const refused = (reason: string, cause?: unknown): PlatformError =>
  new PlatformError("bad_request", `The image is refused: ${reason}.`, cause === undefined ? {} : { cause });
