/**
 * Configuration: one table of settings. Flags beat the environment, which beats the file; a key that is not in the
 * table is an error that names it. This is the only file that reads the environment.
 */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parse as parseToml } from "smol-toml";
import { z } from "zod";
import { nearestWord } from "./lib/nearest-word.ts";
import { isEveryAddress, ownAddress } from "./lib/network/own-address.ts";
import { backupSettings } from "./lib/schemas/backup-settings.ts";
import { dockerSettings } from "./lib/schemas/docker-settings.ts";
import { edgeSettings } from "./lib/schemas/edge-settings.ts";
import { facadeSettings } from "./lib/schemas/facade-settings.ts";
import { isolationSettings } from "./lib/schemas/isolation-settings.ts";
import { objectStoreSettings } from "./lib/schemas/object-store-settings.ts";
import { peerSettings } from "./lib/schemas/peer-settings.ts";
import "./lib/schemas/plain-words.ts";
import { BANDWIDTH_MIN_MBPS } from "./lib/network/egress/bandwidth.ts";
import { dnsSettings } from "./lib/schemas/dns-servers.ts";
import { KUBE_ONLY, kubeSettings } from "./lib/schemas/kube-settings.ts";
import { nodeSettings } from "./lib/schemas/node-settings.ts";
import { registrySettings } from "./lib/schemas/registry-settings.ts";
import { s3Settings } from "./lib/schemas/s3-settings.ts";
import { flag, identityProviders, list, pairs as quotas } from "./lib/schemas/setting-values.ts";
import { hasProxies, isTls, tlsProblem, tlsSettings } from "./lib/schemas/tls-settings.ts";
import { vpcSettings } from "./lib/schemas/vpc-settings.ts";
import { UsageError } from "./lib/usage-error.ts";

interface Setting {
  env: string;
  schema: z.ZodType;
  about: string;
  /** Shown as *** by --check-config. */
  secret?: true;
}

/** As in the list of drivers (`node/drivers/index.ts`). */
export const DRIVER_NAMES = ["local", "docker", "kubernetes"] as const;
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

/** The name of a setting is its key in the file; its flag is the same with hyphens. */
export const SETTINGS = {
  host: { env: "HOST", schema: z.string().min(1).default("127.0.0.1"), about: "Address to listen on." },
  port: {
    env: "PORT",
    schema: z.coerce.number().int().min(0).max(65535).default(8080),
    about: "Port to listen on; 0 = any free one.",
  },
  data: { env: "BERTH_DATA", schema: z.string().min(1).default("~/.berth"), about: "Data folder." },
  database_url: {
    env: "DATABASE_URL",
    schema: z
      .string()
      .regex(/^postgres(ql)?:\/\//, "must start with postgres://")
      .optional(),
    about: "PostgreSQL; absent = SQLite in the data folder.",
    secret: true,
  },
  api_key: {
    env: "BERTH_API_KEY",
    schema: z.string().min(16).max(512).regex(/^\S+$/).optional(),
    about: "The first admin's API key; absent = generated.",
    secret: true,
  },
  workspace: {
    env: "BERTH_WORKSPACE",
    schema: z
      .string()
      .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
      .max(49)
      .default("main"),
    about: "The first workspace.",
  },
  brand: {
    env: "BERTH_BRAND",
    schema: z
      .string()
      .regex(/^[a-z][a-z0-9]*$/, "must be lower-case letters and digits")
      .default("service"),
    about: "Word in header names, image names and the home folder, beside 'service'.",
  },
  region: {
    env: "BERTH_REGION",
    schema: z
      .string()
      .regex(/^[a-z0-9-]+$/)
      .default("local"),
    about: "Name of this region.",
  },
  region_aliases: {
    env: "BERTH_REGION_ALIASES",
    schema: list
      .pipe(z.array(z.string().regex(/^[a-z0-9-]+$/, "must be region names, separated by commas")))
      .default([]),
    about: "Other names for this region, for clients that are used to those of a hosted product (us-pdx-1,eu-lon-1).",
  },
  continent: {
    env: "BERTH_CONTINENT",
    schema: z.enum(["af", "an", "as", "eu", "na", "oc", "sa"]).optional(),
    about: "Where this server stands, for policies of type location: af, an, as, eu, na, oc or sa.",
  },
  country: {
    env: "BERTH_COUNTRY",
    schema: z
      .string()
      .regex(/^[a-z]{2}$/, "must be two lower-case letters (ISO 3166)")
      .optional(),
    about: "The same for its country, such as de or us.",
  },
  public_url: {
    env: "BERTH_PUBLIC_URL",
    schema: z.url().optional(),
    about: "Address under which clients reach this server.",
  },
  domain: { env: "BERTH_DOMAIN", schema: z.string().optional(), about: "Wildcard domain of workloads and previews." },
  console_url: {
    env: "BERTH_CONSOLE_URL",
    schema: z
      .url({ protocol: /^https?$/ })
      .refine((text) => {
        const { pathname, search } = URL.parse(text) ?? {}; // what is no address is told by the rule above
        return pathname === undefined || (pathname === "/" && search === "");
      }, "must be an origin, without a path")
      .optional(),
    about:
      "Address of the pages for people, on a host of its own that leads here; best on a site without workloads. Absent = console.DOMAIN, or console.localhost.",
  },
  path_pages: {
    env: "BERTH_PATH_PAGES",
    schema: z.enum(["sandboxed", "off", "trusted"]).default("sandboxed"),
    about:
      "Pages of workloads at path addresses, which share one origin: sandboxed, off (saved, not shown) or trusted.",
  },
  ...tlsSettings,
  ...edgeSettings,
  identity_providers: {
    env: "BERTH_IDENTITY_PROVIDERS",
    schema: identityProviders.default([]),
    about: "OpenID Connect providers that people may sign in with (a list; JSON outside of the file).",
    secret: true,
  },
  secret_key: {
    env: "BERTH_SECRET_KEY",
    schema: z.string().min(32).optional(),
    about: "Key that seals secrets; absent = secret.key in the data folder.",
    secret: true,
  },
  secret_key_next: {
    env: "BERTH_SECRET_KEY_NEXT",
    schema: z.string().min(32).optional(),
    about: "Key that `berth rotate-key` replaces BERTH_SECRET_KEY with; the same on every server.",
    secret: true,
  },
  plan: { env: "BERTH_PLAN", schema: z.string().default("self-hosted"), about: "The plan that resources report." },
  egress_pool: {
    env: "BERTH_EGRESS_POOL",
    schema: list.pipe(z.array(z.union([z.ipv4(), z.ipv6()]))).default([]),
    about: "Addresses of this machine that egress IPs are taken from.",
  },
  egress_probe: {
    env: "BERTH_EGRESS_PROBE",
    schema: list.pipe(z.array(z.url({ protocol: /^https?$/ }))).default([]),
    about: "URLs that answer with the address of their client; an egress IP is DEPLOYED once one saw its address.",
  },
  ...vpcSettings,
  bandwidth_mbps: {
    env: "BERTH_BANDWIDTH_MBPS",
    schema: z.coerce.number().min(BANDWIDTH_MIN_MBPS).optional(),
    about: "Megabits per second that each workload may send, and receive, at most; absent = no limit.",
  },
  ...dnsSettings,
  quotas: {
    env: "BERTH_QUOTAS",
    schema: quotas.default({}),
    about:
      "How many resources of a kind a workspace may have, such as sandboxes=10,volumes=20; drive_mb and drive_objects limit what its drives hold.",
  },
  features: {
    env: "BERTH_FEATURES",
    schema: list.default([]),
    about: "Feature flags of your own that /v0/features reports as on.",
  },
  public_ips: {
    env: "BERTH_PUBLIC_IPS",
    schema: list.default([]),
    about: "CIDRs that this server's traffic comes from.",
  },
  model_prices: {
    env: "BERTH_MODEL_PRICES",
    schema: z.string().optional(),
    about: "File with prices of models (JSON), before those shipped.",
  },
  pool_size: {
    env: "BERTH_POOL_SIZE",
    schema: z.coerce.number().int().min(0).max(1000).default(4),
    about: "Sandboxes that driver local keeps ready for the next create.",
  },
  driver: {
    env: "BERTH_DRIVER",
    schema: z.enum(DRIVER_NAMES).default("local"),
    about: "What runs workloads: local (this Linux machine), docker (a Docker Engine on it) or kubernetes (a cluster).",
  },
  ...isolationSettings,
  ...dockerSettings,
  image_max: {
    env: "BERTH_IMAGE_MAX",
    schema: z.coerce.number().int().min(1).default(16_384),
    about: "Largest archive that `berth image load` may send, and largest image that is pulled, compressed, in MB.",
  },
  ...facadeSettings,
  ...registrySettings,
  on_stop: {
    env: "BERTH_ON_STOP",
    schema: z.enum(["keep", "freeze", "kill"]).default("keep"),
    about: "What happens to running workloads when the server stops; killed sandboxes keep their files.",
  },
  private_connections: {
    env: "BERTH_PRIVATE_CONNECTIONS",
    schema: flag.optional(),
    about:
      "Let integration connections and image registries lead to private addresses; absent = only while the server listens on loopback.",
  },
  allow_unisolated: {
    env: "BERTH_ALLOW_UNISOLATED",
    schema: flag.default(false),
    about: "Run workloads as plain processes where the machine cannot isolate them.",
  },
  standby_after: {
    env: "BERTH_STANDBY_AFTER",
    schema: z.coerce.number().int().min(1).default(15),
    about: "Seconds without a request after which a sandbox sleeps.",
  },
  price_file: {
    env: "BERTH_PRICE_FILE",
    schema: z.string().optional(),
    about: "Prices of usage (TOML or JSON), in place of the shipped ones.",
  },
  usage_events_days: {
    env: "BERTH_USAGE_EVENTS_DAYS",
    schema: z.coerce.number().int().min(32).max(36_500).default(400),
    about: "How long the single events behind a bill are kept, in days; their sums stay.",
  },
  ...nodeSettings,
  ...kubeSettings,
  ...peerSettings,
  ...s3Settings,
  ...objectStoreSettings,
  ...backupSettings,
  job_slots: {
    env: "BERTH_JOB_SLOTS",
    schema: z.coerce.number().int().min(0).max(10_000).default(0),
    about: "Tasks of jobs that this server runs at a time; 0 = four for each core.",
  },
  job_memory: {
    env: "BERTH_JOB_MEMORY",
    schema: z.coerce.number().int().min(0).default(0),
    about: "Memory that tasks of jobs may take together on this server, in MB; 0 = three quarters of the machine's.",
  },
  job_lease: {
    env: "BERTH_JOB_LEASE",
    schema: z.coerce.number().int().min(2).max(3600).default(30),
    about:
      "Seconds without a heartbeat after which the tasks of a server end; after three times as long another server runs them.",
  },
  job_grace: {
    env: "BERTH_JOB_GRACE",
    schema: z.coerce.number().int().min(0).max(3600).default(10),
    about: "Seconds between SIGTERM and SIGKILL when a task exceeds its time limit.",
  },
  job_keep_days: {
    env: "BERTH_JOB_KEEP_DAYS",
    schema: z.coerce.number().int().min(1).max(36_500).default(30),
    about: "How long executions of jobs can be read after their end, in days.",
  },
  build_env_file: {
    env: "BERTH_BUILD_ENV_FILE",
    schema: z.string().optional(),
    about: "File with variables that builds get (KEY=VALUE), such as npm_config_registry or PIP_INDEX_URL.",
  },
  otlp_url: {
    env: "BERTH_OTLP_URL",
    schema: z.url({ protocol: /^https?$/ }).optional(),
    about: "Collector (OTLP over HTTP) that agents, functions, applications and jobs are told to send telemetry to.",
  },
  log_days: {
    env: "BERTH_LOG_DAYS",
    schema: z.coerce.number().int().min(1).max(3650).default(7),
    about: "How long what workloads write is kept, in days.",
  },
  log_workload_mb: {
    env: "BERTH_LOG_WORKLOAD_MB",
    schema: z.coerce.number().int().min(8).default(64),
    about: "How much of what one workload writes is kept, in MB.",
  },
  log_total_mb: {
    env: "BERTH_LOG_TOTAL_MB",
    schema: z.coerce.number().int().min(8).default(4096),
    about: "How much of what all workloads of this server write is kept, in MB.",
  },
  audit_days: {
    env: "BERTH_AUDIT_DAYS",
    schema: z.coerce.number().int().min(0).max(36_500).default(0),
    about: "How long lines of the audit log are kept, in days; 0 = for ever.",
  },
  idle_after: {
    env: "BERTH_IDLE_AFTER",
    schema: z.coerce.number().int().min(1).default(30),
    about: "Seconds without a request after which a copy of an agent, function or application is let go.",
  },
  thread_keep_days: {
    env: "BERTH_THREAD_KEEP_DAYS",
    schema: z.coerce.number().int().min(1).max(3650).default(30),
    about: "How long agents remember a thread after its last message, in days.",
  },
  private_callbacks: {
    env: "BERTH_PRIVATE_CALLBACKS",
    schema: flag.default(false),
    about: "Allow callbacks to private and loopback addresses.",
  },
  disk_free_min: {
    env: "BERTH_DISK_FREE_MIN",
    schema: z.coerce.number().int().min(0).default(128),
    about: "New work is refused while less is free on the data folder's disk, in MB; 0 = never.",
  },
  disk_reserve: {
    env: "BERTH_DISK_RESERVE",
    schema: z.coerce.number().int().min(0).max(65_536).default(32),
    about: "Kept on that disk for deletes, restarts and the database itself, in MB, and given up when it is full.",
  },
  anonymous_writes: {
    env: "BERTH_ANONYMOUS_WRITES",
    schema: z.coerce.number().int().min(1).max(1_000_000).default(300),
    about: "Sign-ins and device codes that one address without credentials may begin in a minute.",
  },
  open_requests: {
    env: "BERTH_OPEN_REQUESTS",
    schema: z.coerce.number().int().min(2).max(1_000_000).default(2048),
    about: "Requests and streams to workloads that one workspace may have open; one caller may have half of them.",
  },
  log_level: {
    env: "BERTH_LOG_LEVEL",
    schema: z.enum(LOG_LEVELS).default("info"),
    about: "fatal, error, warn, info, debug, trace or silent.",
  },
} as const satisfies Record<string, Setting>;

type Name = keyof typeof SETTINGS;
export type Config = { [N in Name]: z.output<(typeof SETTINGS)[N]["schema"]> } & { data: string };

export class ConfigError extends UsageError {}

export interface Sources {
  flags: Record<string, string | boolean>;
  env: NodeJS.ProcessEnv;
  home: string;
}

export function loadConfig({
  flags,
  env = process.env,
  home = homedir(),
}: Partial<Sources> & Pick<Sources, "flags">): Config {
  const { config: file, ...rest } = flags;
  const given = {
    ...fromFile(file === undefined ? env.BERTH_CONFIG : String(file), dataFolder(flags.data ?? env.BERTH_DATA, home)),
    ...fromEnv(env),
    ...fromFlags(rest),
  };
  const shape = Object.fromEntries(Object.entries(SETTINGS).map(([name, setting]) => [name, setting.schema]));
  const result = z.object(shape).safeParse(given);
  if (!result.success) {
    throw new ConfigError(
      result.error.issues.map((issue) => `${originOf(issue.path[0] as Name)}: ${issue.message}`).join("\n"),
    );
  }
  const config = result.data as Config;
  checkTogether(config);
  return { ...config, data: dataFolder(config.data, home) };
}

/** What is in force, with secrets hidden; for --check-config. */
export function describeConfig(config: Config): string {
  const shown = (name: Name): unknown =>
    "secret" in SETTINGS[name] && config[name] !== undefined ? "***" : (config[name] ?? null);
  return (Object.keys(SETTINGS) as Name[]).map((name) => `${name} = ${JSON.stringify(shown(name))}`).join("\n");
}

const dataFolder = (given: string | boolean | undefined, home: string): string =>
  resolve(String(given || SETTINGS.data.schema.parse(undefined)).replace(/^~(?=$|\/)/, home));

function fromFile(path: string | undefined, dataDir: string): Record<string, unknown> {
  const chosen = path ?? join(dataDir, "berth.toml");
  if (!existsSync(chosen)) {
    if (path) throw new ConfigError(`The configuration file ${chosen} does not exist.`);
    return {};
  }
  let values: Record<string, unknown>;
  try {
    values = parseToml(readFileSync(chosen, "utf8"));
  } catch (error) {
    throw new ConfigError(`${chosen}: ${(error as Error).message}`);
  }
  for (const key of Object.keys(values))
    if (!Object.hasOwn(SETTINGS, key)) throw new ConfigError(`${chosen}: unknown key '${key}'. ${suggest(key)}`);
  return values;
}

function fromEnv(env: NodeJS.ProcessEnv): Record<string, string> {
  const byEnv = new Map(Object.entries(SETTINGS).map(([name, setting]) => [setting.env as string, name]));
  for (const key of Object.keys(env)) {
    if (key.startsWith("BERTH_") && !byEnv.has(key) && !/^BERTH_(TEST|CONFIG|URL|PROFILE)/.test(key)) {
      throw new ConfigError(`unknown environment variable ${key}. ${suggest(key.slice(6).toLowerCase())}`);
    }
  }
  const entries = [...byEnv].map(([key, name]) => [name, env[key]] as const);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

function fromFlags(flags: Record<string, string | boolean>): Record<string, string | boolean> {
  return Object.fromEntries(
    Object.entries(flags).map(([key, value]) => {
      const name = key.replaceAll("-", "_");
      if (!Object.hasOwn(SETTINGS, name)) throw new ConfigError(`unknown flag --${key}. ${suggest(name)}`);
      return [name, value];
    }),
  );
}

/** A setting in all its spellings. */
export const originOf = (name: Name): string => `${name} (${SETTINGS[name].env}, --${name.replaceAll("_", "-")})`;

const suggest = (key: string): string => {
  const near = nearestWord(key, Object.keys(SETTINGS));
  return near ? `Did you mean ${originOf(near as Name)}?` : `Known are: ${Object.keys(SETTINGS).join(", ")}.`;
};

const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);

/** Whether only this machine can reach the server. */
export const isLoopback = (host: string): boolean => LOOPBACK.has(host);

/** Folder of the driver in use. Each driver has its own: none may take the workloads of another for its own. */
export const driverDir = ({ data, driver }: Config): string => join(data, driver === "local" ? "runtime" : driver);

/** The setting as a driver takes it: no stop of a server takes the files of sandboxes. */
export const onStopOf = ({ on_stop: onStop }: Config): "keep" | "freeze" | "end" =>
  onStop === "kill" ? "end" : onStop;

/** The settings of the Docker driver. */
export const dockerOf = ({ docker_host: host, docker_image: image, docker_runtime: runtime }: Config) => ({
  host,
  image,
  runtime,
});

function checkTogether(config: Config): void {
  const ofDriver = {
    local: ["isolation", "runsc"],
    docker: ["docker_image", "docker_runtime"],
    kubernetes: KUBE_ONLY,
  } as const;
  for (const [driver, names] of Object.entries(ofDriver)) {
    const idle = config.driver === driver ? undefined : names.find((name) => config[name] !== undefined);
    if (idle) throw new ConfigError(`${originOf(idle)} is for driver ${driver}, and driver is ${config.driver}.`);
  }
  const { console_url: pages, public_url: api } = config;
  if (pages !== undefined && api !== undefined && new URL(pages).hostname === new URL(api).hostname)
    throw new ConfigError("console_url needs another host name than public_url: that one serves workloads.");
  if (config.backup_schedule !== undefined && config.backup_target === undefined)
    throw new ConfigError("BERTH_BACKUP_SCHEDULE needs BERTH_BACKUP_TARGET: where the backups go.");
  const problem = tlsProblem(config);
  if (problem !== null) throw new ConfigError(problem);
  if (!isLoopback(config.host) && !isTls(config) && !hasProxies(config) && !config.insecure_http) {
    throw new ConfigError(
      `host ${config.host} is reachable from other machines, and plain HTTP would show API keys to the network. Set tls_cert and tls_key, or tls = "auto", or trusted_proxies (or trust_proxy) behind a TLS proxy, or insecure_http if the network is private.`,
    );
  }
}

/** What the address of people's pages is made of. */
export const consoleBaseOf = (config: Config, publicUrl: string) => ({
  publicUrl,
  domain: config.domain,
  consoleUrl: config.console_url,
});

/**
 * The address that clients are told. Without a public address: the one that the server listens on, and this machine's
 * own when the server listens on every address. A port of 0 is replaced once the server listens.
 */
export async function clientUrl(config: Config, port = config.port): Promise<string> {
  if (config.public_url) return config.public_url.replace(/\/+$/, "");
  const host = isEveryAddress(config.host) ? await ownAddress() : config.host;
  return `${isTls(config) ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
