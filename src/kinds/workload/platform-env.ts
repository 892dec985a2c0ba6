/** Variables that the platform sets in every workload: its identity, and the platform's URL. */
import { PLATFORM_DOOR_PORT } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Settings } from "../port.ts";
import { logTag } from "./log-tag.ts";
import { workloadSpec } from "./spec.ts";

/** Variables that owners cannot override. */
export function platformEnv({ workspace, kind, name, spec }: Resource, settings: Settings): Record<string, string> {
  // A workload cannot reach the host's loopback; this port on its own loopback leads to the platform.
  const door = `http://127.0.0.1:${PLATFORM_DOOR_PORT}`;
  return {
    HOST: "0.0.0.0",
    BL_CLOUD: "true",
    BL_WORKSPACE: workspace,
    BL_NAME: name,
    BL_TYPE: kind,
    BL_REGION: typeof spec.region === "string" ? spec.region : settings.region,
    BL_GENERATION: generationOf(spec),
    BL_API_URL: `${door}/v0`,
    BL_RUN_URL: door,
    DO_NOT_TRACK: "1",
  };
}

/** Defaults that owners can override: logging, and the telemetry collector. */
export function usualEnv(resource: Resource, { otlpUrl }: Settings): Record<string, string> {
  const { plural } = logTag(resource, "run");
  return {
    BL_LOG_LEVEL: "info",
    BL_DEBUG_TELEMETRY: "false",
    BL_ENABLE_OPENTELEMETRY: String(otlpUrl !== null),
    OTEL_SERVICE_NAME: resource.name,
    OTEL_RESOURCE_ATTRIBUTES: `workload.id=${resource.name},workload.type=${plural},workspace=${resource.workspace}`,
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.1",
    // Without a collector, libraries would log connection errors for ever.
    ...(otlpUrl === null
      ? { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
      : { OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl, OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }),
  };
}

const generationOf = (spec: Resource["spec"]): string => workloadSpec(spec).runtime?.generation ?? "mk3";
