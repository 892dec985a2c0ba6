/**
 * Metrics of the gateway. Requests are counted in plain numbers and become labelled samples only when the metrics are
 * read: a label lookup per request costs more than the rest of its bookkeeping.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { GatewayErrorCode } from "../contract/gateway-errors.ts";
import type { RequestRecord } from "./deps.ts";
import type { GatewayTotals, OpenNow, Row } from "./totals.ts";

export interface GatewayCounters {
  totals(): GatewayTotals;
  count(record: RequestRecord): void;
  /** Counts a request that was refused before it reached a workload. */
  refused(code: GatewayErrorCode): void;
  /** Counts a request that another process or node serves. */
  handedOn(): void;
  held(delta: 1 | -1): number;
}

export interface CounterSources {
  openConnections(): number;
  clientConnections(): number;
  openRequests(): number;
  /** Totals of edge processes; their requests count like those of this process. */
  edgeTotals?(): Promise<readonly GatewayTotals[]>;
}

/** Whether a request counts as an error of its workload. */
export const isFailure = ({
  status,
  error,
  clientGone,
}: Pick<RequestRecord, "status" | "error" | "clientGone">): boolean => status >= 500 || (error !== null && !clientGone);

const COLD_START_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function gatewayCounters(registry: Registry, sources: CounterSources): GatewayCounters {
  const rows = new Map<string, Row>();
  const errors = new Map<string, number>();
  let heldNow = 0;
  let handedOn = 0;
  const totals = (): GatewayTotals => ({
    rows: [...rows.values()],
    errors: [...errors],
    handedOn,
    open: {
      connections: sources.openConnections(),
      clients: sources.clientConnections(),
      requests: sources.openRequests(),
    },
  });
  const all = async (): Promise<GatewayTotals[]> => [totals(), ...((await sources.edgeTotals?.()) ?? [])];

  const perRow = (name: string, help: string, value: (row: Row) => number): void => {
    new Counter({
      name,
      help,
      labelNames: ["kind", "code"],
      registers: [registry],
      async collect() {
        const counted = await all();
        this.reset();
        for (const { rows: some } of counted)
          for (const row of some) this.inc({ kind: row.kind, code: row.code }, value(row));
      },
    });
  };
  perRow("berth_gateway_requests_total", "Requests to workloads, by kind and status class", (row) => row.count);
  perRow("berth_gateway_request_bytes_total", "Bytes of request bodies", (row) => row.bytesIn);
  perRow("berth_gateway_response_bytes_total", "Bytes of response bodies", (row) => row.bytesOut);
  perRow("berth_gateway_request_seconds_total", "Time between arrival and end of requests", (row) => row.seconds);
  new Counter({
    name: "berth_gateway_errors_total",
    help: "Requests ended by the platform, by error code",
    labelNames: ["error"],
    registers: [registry],
    async collect() {
      const counted = await all();
      this.reset();
      for (const { errors: some } of counted) for (const [error, count] of some) this.inc({ error }, count);
    },
  });
  new Counter({
    name: "berth_gateway_handed_on_total",
    help: "Requests that an edge process handed to its owner, or a server to another node",
    registers: [registry],
    async collect() {
      const counted = await all();
      this.reset();
      for (const one of counted) this.inc(one.handedOn);
    },
  });
  gauge(registry, "berth_gateway_held_requests", "Requests waiting for a workload to start", () => heldNow);
  const sumOf = (name: keyof OpenNow) => async (): Promise<number> =>
    (await all()).reduce((sum, { open }) => sum + open[name], 0);
  gauge(registry, "berth_gateway_open_connections", "Connections to workloads", sumOf("connections"));
  gauge(registry, "berth_gateway_client_connections", "Connections of clients", sumOf("clients"));
  gauge(registry, "berth_gateway_open_requests", "Requests and streams to workloads", sumOf("requests"));
  const coldStart = new Histogram({
    name: "berth_gateway_cold_start_seconds",
    help: "How long requests were held for a start or a thaw",
    labelNames: ["kind"],
    buckets: COLD_START_BUCKETS,
    registers: [registry],
  });

  return {
    totals,
    count(record) {
      const code = record.clientGone ? "gone" : `${Math.floor(record.status / 100)}xx`;
      const key = record.workload.kind + code;
      let row = rows.get(key);
      if (row === undefined) {
        row = { kind: record.workload.kind, code, count: 0, bytesIn: 0, bytesOut: 0, seconds: 0 };
        rows.set(key, row);
      }
      row.count += 1;
      row.bytesIn += record.bytesIn;
      row.bytesOut += record.bytesOut;
      row.seconds += record.durationMs / 1000;
      if (record.error !== null) errors.set(record.error, (errors.get(record.error) ?? 0) + 1);
      if (record.heldMs !== null) coldStart.observe({ kind: record.workload.kind }, record.heldMs / 1000);
    },
    refused(code) {
      errors.set(code, (errors.get(code) ?? 0) + 1);
    },
    handedOn() {
      handedOn += 1;
    },
    held(delta) {
      heldNow += delta;
      return heldNow;
    },
  };
}

function gauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await read());
    },
  });
}
