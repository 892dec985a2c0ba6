/** The settings of `config.ts` that are about container registries. */
import { z } from "zod";
import { list } from "./setting-values.ts";

export const registrySettings = {
  registry_max: {
    env: "BERTH_REGISTRY_MAX",
    schema: z.coerce.number().int().min(1).default(102_400),
    about: "What the images that one workspace has pushed may have together, compressed, in MB.",
  },
  registries: {
    env: "BERTH_REGISTRIES",
    schema: list.optional(),
    about: "Registries that images may be pulled from, such as docker.io,ghcr.io; absent = any, none = no pulls.",
  },
  registry_mirrors: {
    env: "BERTH_REGISTRY_MIRRORS",
    schema: list
      .pipe(z.array(z.string().regex(/^[^=\s]+=[^=\s]+$/, "must be pairs such as docker.io=mirror.example.com/hub")))
      .default([]),
    about: "Mirrors that are asked before a registry, such as docker.io=mirror.example.com/hub.",
  },
  registry_plain_http: {
    env: "BERTH_REGISTRY_PLAIN_HTTP",
    schema: list.default([]),
    about: "Registries (host:port) that are spoken to without TLS; those on loopback always are.",
  },
  registry_ca: {
    env: "BERTH_REGISTRY_CA",
    schema: z.string().optional(),
    about: "File with certificates (PEM) that registries are trusted by, beside the usual ones.",
  },
  docker_config: {
    env: "BERTH_DOCKER_CONFIG",
    schema: z.string().optional(),
    about: "Docker's config.json with credentials for registries, which pulls of every workspace use.",
  },
} as const;
