/** The registries of this server, as configured. */
import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { type Config, ConfigError, originOf } from "../config.ts";
import { NO_CREDENTIALS } from "../registry/credentials.ts";
import { dockerConfigFile } from "../registry/docker-config-file.ts";
import { createRegistries, parseMirror, type Registries } from "../registry/registries.ts";
import { privateAddressesOf } from "./settings.ts";

export function registriesOf(config: Config, log: Logger): Registries {
  const { registries, registry_mirrors, registry_plain_http, registry_ca, docker_config } = config;
  const onError = (error: unknown): void =>
    log.warn({ err: error, file: docker_config }, "docker_config gives no credentials");
  return createRegistries({
    privateAddresses: privateAddressesOf(config),
    allowed: registries ?? null,
    mirrors: registry_mirrors.map((text) => {
      const mirror = parseMirror(text);
      if (!mirror) throw new ConfigError(`${originOf("registry_mirrors")}: '${text}' is not REGISTRY=HOST[/PATH].`);
      return mirror;
    }),
    plainHttp: registry_plain_http,
    ...(registry_ca === undefined ? {} : { ca: certificates(registry_ca) }),
    credentials: docker_config === undefined ? NO_CREDENTIALS : dockerConfigFile(docker_config, onError),
  });
}

function certificates(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError(`${originOf("registry_ca")}: ${file}: ${(error as Error).message}`);
  }
}
