/** Variables that the platform gives every workload: who it is, and where the platform is. */
import { PLATFORM_DOOR_PORT } from "../../node/driver.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Settings } from "../port.ts";
import { logTag } from "./log-tag.ts";

/** Nobody can set these otherwise. */
export function platformEnv({ workspace, kind, name, spec }: Resource, settings: Settings): Record<string, string> {
  // A workload cannot reach the host's loopback; this door on its own leads to the platform.
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

/** What code gets unless its owner says otherwise: how it logs, and where telemetry goes. */
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
    // Without a collector libraries would report forever that they cannot reach theirs.
    ...(otlpUrl === null
      ? { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
      : { OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl, OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }),
  };
}

const generationOf = ({ runtime }: Resource["spec"]): string => {
  const { generation } = (runtime ?? {}) as { generation?: unknown };
  return typeof generation === "string" ? generation : "mk3";
};
