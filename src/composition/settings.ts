/** Settings derived from the operator's configuration and from this machine. */
import { readFileSync } from "node:fs";
import { arch, availableParallelism, totalmem } from "node:os";
import { parseEnv } from "node:util";
import { type Config, ConfigError, isLoopback, originOf } from "../config.ts";
import type { Settings } from "../kinds/port.ts";
import { quotasByKind } from "../kinds/quota/quotas.ts";
import { parseOperatorNetwork } from "../lib/network/egress/operator-networks.ts";
import { driveQuotaOf } from "../lib/schemas/drive-quota.ts";
import { DAY_MS, SECOND_MS } from "../lib/time/clock.ts";
import { createPriceBook, type PriceBook, parsePriceFile } from "../metering/price-book.ts";
import { createModelPriceBook, type ModelPriceBook, parsePriceTable } from "../models/price-book.ts";

/** Task slots per CPU core: tasks wait for I/O most of the time. */
const SLOTS_PER_CORE = 4;
const JOB_MEMORY_SHARE = 0.75;
/** Share of the memory that is kept available where the operator names no figure. */
const MEMORY_FREE_SHARE = 1 / 20;
/** Words of policies for kinds of processor. */
const PROCESSORS: Record<string, string> = { x64: "x86", arm64: "arm" };

export const settingsOf = (config: Config, version: string): Omit<Settings, "nodeId"> => ({
  brand: config.brand,
  region: config.region,
  regionAliases: config.region_aliases,
  continent: config.continent ?? "",
  country: config.country ?? "",
  flavors: [{ type: "cpu", name: PROCESSORS[arch()] ?? arch() }],
  plan: config.plan,
  publicUrl: (config.public_url ?? "").replace(/\/+$/, ""),
  s3Url: null, // known once the door listens
  s3ReachesAll: false,
  consoleUrl: config.console_url ?? null,
  domain: config.domain ?? null,
  version,
  standbyAfterMs: config.standby_after * SECOND_MS,
  memoryFreeMinBytes: (config.memory_free_min ?? (machineMemory() / 2 ** 20) * MEMORY_FREE_SHARE) * 2 ** 20,
  idleAfterMs: config.idle_after * SECOND_MS,
  egressPool: config.egress_pool,
  vpcNetworks: config.vpc_networks.map((text) => parseOperatorNetwork(text, "vpc_networks")),
  dnsServers: config.dns_servers,
  acme: acmeOf(config),
  ownCertificate: config.tls_cert !== undefined,
  publicIps: config.public_ips,
  quotas: quotasByKind(config.quotas),
  driveQuota: driveQuotaOf(config.quotas),
  privateCallbacks: config.private_callbacks,
  features: config.features,
  usageEventsDays: config.usage_events_days,
  jobSlots: config.job_slots || availableParallelism() * SLOTS_PER_CORE,
  jobMemoryMb: config.job_memory || Math.floor((machineMemory() / 2 ** 20) * JOB_MEMORY_SHARE),
  nodeFullShare: config.node_full_at / 100,
  memoryMaxMb: Math.floor(machineMemory() / 2 ** 20),
  jobLeaseMs: config.job_lease * SECOND_MS,
  jobGraceMs: config.job_grace * SECOND_MS,
  imageBytesMax: config.image_max * 2 ** 20,
  registryBytesMax: config.registry_max * 2 ** 20,
  buildEnv: fileOf(config, "build_env_file", (text) => parseEnv(text) as Record<string, string>) ?? {},
  otlpUrl: config.otlp_url ?? null,
  threadsKeptMs: config.thread_keep_days * DAY_MS,
  executionsKeptMs: config.job_keep_days * DAY_MS,
});

function acmeOf(config: Config): Settings["acme"] {
  const { acme_directory: directory, acme_email: email, acme_challenge: challenge, acme_hook: hook } = config;
  if (directory === undefined) return null;
  const ca = fileOf(config, "acme_ca", (text) => text) ?? null;
  return { directory, email: email ?? null, ca, challenge, hook: hook ?? null };
}

type FileSetting = "acme_ca" | "build_env_file" | "price_file" | "model_prices";

/** The parsed content of a file that a setting names; undefined when the setting is absent. */
function fileOf<T>(config: Config, name: FileSetting, parse: (text: string) => T): T | undefined {
  const file = config[name];
  if (file === undefined) return undefined;
  try {
    return parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ConfigError(`${originOf(name)}: ${file}: ${(error as Error).message}`);
  }
}

export const logBounds = ({ log_days: days, log_workload_mb: workloadMb, log_total_mb: totalMb }: Config) => ({
  ageMs: days * DAY_MS,
  workloadBytes: workloadMb * 2 ** 20,
  totalBytes: totalMb * 2 ** 20,
});

/** Without a container limit, constrainedMemory() is 0 or a huge number. */
export const machineMemory = (): number =>
  Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());

/** Connections may name private addresses where the server itself can only be reached from this machine. */
export const privateAddressesOf = ({ private_connections, host }: Config): boolean =>
  private_connections ?? isLoopback(host);

export const usagePrices = (config: Config): PriceBook =>
  fileOf(config, "price_file", (text) => createPriceBook(parsePriceFile(text))) ?? createPriceBook();

/** The operator's own prices of models; those shipped apply to the rest. */
export const modelPrices = (config: Config): ModelPriceBook =>
  createModelPriceBook(fileOf(config, "model_prices", parsePriceTable));
