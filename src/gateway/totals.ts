/** What a process of the server has counted, as data that other processes can add up. */

export interface Row {
  kind: string;
  code: string;
  count: number;
  bytesIn: number;
  bytesOut: number;
  seconds: number;
}

/** Everything that a process has counted since its start. A report that comes late or twice changes nothing. */
export interface GatewayTotals {
  rows: readonly Row[];
  errors: readonly (readonly [code: string, count: number])[];
  /** Requests that went to another process or node, which serves and counts them. */
  handedOn: number;
  open: OpenNow;
}

/** What a process has open at this moment. */
export interface OpenNow {
  /** Connections to workloads. */
  connections: number;
  /** Connections of clients. */
  clients: number;
  /** Requests and streams to workloads. */
  requests: number;
}

export const NOTHING_OPEN: OpenNow = { connections: 0, clients: 0, requests: 0 };
export const NOTHING_COUNTED: GatewayTotals = { rows: [], errors: [], handedOn: 0, open: NOTHING_OPEN };

/** What processes had counted that are gone. */
export class Sums {
  readonly #rows = new Map<string, Row>();
  readonly #errors = new Map<string, number>();
  #handedOn = 0;

  add({ rows, errors, handedOn }: GatewayTotals): void {
    this.#handedOn += handedOn;
    for (const row of rows) {
      const key = `${row.kind} ${row.code}`;
      const sum = this.#rows.get(key) ?? { ...row, count: 0, bytesIn: 0, bytesOut: 0, seconds: 0 };
      sum.count += row.count;
      sum.bytesIn += row.bytesIn;
      sum.bytesOut += row.bytesOut;
      sum.seconds += row.seconds;
      this.#rows.set(key, sum);
    }
    for (const [code, count] of errors) this.#errors.set(code, (this.#errors.get(code) ?? 0) + count);
  }

  sum(): GatewayTotals {
    const [rows, errors] = [[...this.#rows.values()], [...this.#errors]];
    return { rows, errors, handedOn: this.#handedOn, open: NOTHING_OPEN };
  }
}
