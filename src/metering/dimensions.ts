/**
 * What is metered: each dimension belongs to one resource type and has one unit. Quantities are kept as whole numbers
 * of the unit's base, so that no sum ever rounds:
 *
 *   gbs     GB-seconds, kept in MB x milliseconds (1 GB = 1024 MB)
 *   hours   active hours, kept in milliseconds
 *   count   single events
 *   gb      gigabytes moved, kept in KB (1 GB = 1024 x 1024 KB)
 *   usd     money that others charge, kept in nano-USD
 */
export const UNIT_BASE = {
  gbs: 1_024_000n,
  hours: 3_600_000n,
  count: 1n,
  gb: 1_048_576n,
  usd: 1_000_000_000n,
} as const;

export type Unit = keyof typeof UNIT_BASE;

export interface Dimension {
  resourceType: string;
  unit: Unit;
}

/** The twelve dimensions of the billing interface. */
export const STANDARD_DIMENSIONS = {
  sandbox_compute_runtime_gbs: { resourceType: "sandbox", unit: "gbs" },
  sandbox_image_storage_gbs: { resourceType: "sandbox", unit: "gbs" },
  sandbox_snapshot_storage_gbs: { resourceType: "sandbox", unit: "gbs" },
  agent_compute_runtime_gbs: { resourceType: "agent", unit: "gbs" },
  agent_image_storage_gbs: { resourceType: "agent", unit: "gbs" },
  agent_async_requests_count: { resourceType: "agent", unit: "count" },
  job_compute_runtime_gbs: { resourceType: "job", unit: "gbs" },
  job_image_storage_gbs: { resourceType: "job", unit: "gbs" },
  mcp_server_compute_runtime_gbs: { resourceType: "mcp_server", unit: "gbs" },
  mcp_server_image_storage_gbs: { resourceType: "mcp_server", unit: "gbs" },
  volume_storage_gbs: { resourceType: "volume", unit: "gbs" },
  custom_domain_active_time_hours: { resourceType: "custom_domain", unit: "hours" },
} as const satisfies Record<string, Dimension>;

/**
 * Dimensions beyond the twelve. They are free until the operator prices them, so a bill over the twelve is the same
 * with or without them.
 */
export const EXTRA_DIMENSIONS = {
  model_input_tokens_count: { resourceType: "model", unit: "count" },
  model_output_tokens_count: { resourceType: "model", unit: "count" },
  model_cached_tokens_count: { resourceType: "model", unit: "count" },
  model_requests_count: { resourceType: "model", unit: "count" },
  model_unpriced_requests_count: { resourceType: "model", unit: "count" },
  model_estimated_requests_count: { resourceType: "model", unit: "count" },
  model_cache_hits_count: { resourceType: "model", unit: "count" },
  model_similar_hits_count: { resourceType: "model", unit: "count" },
  model_provider_cost_usd: { resourceType: "model", unit: "usd" },
  volume_snapshot_storage_gbs: { resourceType: "volume", unit: "gbs" },
  drive_storage_gbs: { resourceType: "drive", unit: "gbs" },
  sandbox_egress_gb: { resourceType: "sandbox", unit: "gb" },
  agent_egress_gb: { resourceType: "agent", unit: "gb" },
  job_egress_gb: { resourceType: "job", unit: "gb" },
  mcp_server_egress_gb: { resourceType: "mcp_server", unit: "gb" },
} as const satisfies Record<string, Dimension>;

export const DIMENSIONS = { ...STANDARD_DIMENSIONS, ...EXTRA_DIMENSIONS } as const;

export type DimensionName = keyof typeof DIMENSIONS;

export const DIMENSION_NAMES = Object.keys(DIMENSIONS) as DimensionName[];

export const isDimension = (name: string): name is DimensionName => Object.hasOwn(DIMENSIONS, name);

/** Converts base units to the unit that readers expect: GB-seconds, hours, events, gigabytes. */
export const usageOf = (dimension: DimensionName, quantity: bigint): number => quotient(quantity, baseOf(dimension));

/** A common multiple of all bases, so that amounts of different units are added before they are rounded. */
const COMMON_BASE = 2n ** 20n * 3n ** 2n * 5n ** 9n;

/** Amounts of several dimensions, each in its own unit, as one number. */
export const usageOfAll = (amounts: readonly { dimension: string; quantity: bigint }[]): number =>
  quotient(
    amounts.reduce((sum, { dimension, quantity }) => {
      return isDimension(dimension) ? sum + quantity * (COMMON_BASE / baseOf(dimension)) : sum;
    }, 0n),
    COMMON_BASE,
  );

const baseOf = (dimension: DimensionName): bigint => UNIT_BASE[DIMENSIONS[dimension].unit];

const QUOTIENT_DECIMALS = 20;

/** The double nearest to the exact quotient, rounded once. */
function quotient(amount: bigint, base: bigint): number {
  if (amount <= Number.MAX_SAFE_INTEGER) return Number(amount) / Number(base);
  const decimals = ((amount % base) * 10n ** BigInt(QUOTIENT_DECIMALS)) / base;
  return Number(`${amount / base}.${decimals.toString().padStart(QUOTIENT_DECIMALS, "0")}`);
}
