/** Bytes that the machine's interfaces sent and received. The kernel lists all interfaces in one table. */
import { readFileSync } from "node:fs";

export interface InterfaceBytes {
  sentBytes: number;
  receivedBytes: number;
}

const NONE: InterfaceBytes = { sentBytes: 0, receivedBytes: 0 };

export class InterfaceCounters {
  readonly #read: () => string;
  #table: Map<string, InterfaceBytes> | null = null;

  constructor(read = (): string => readFileSync("/proc/net/dev", "utf8")) {
    this.#read = read;
  }

  /** Looks at many interfaces in one turn of the event loop read the table once; later turns read it again. */
  of(name: string): InterfaceBytes {
    if (!this.#table) {
      this.#table = parse(this.#read());
      setImmediate(() => {
        this.#table = null;
      });
    }
    return this.#table.get(name) ?? NONE;
  }
}

function parse(text: string): Map<string, InterfaceBytes> {
  const table = new Map<string, InterfaceBytes>();
  for (const line of text.split("\n").slice(2)) {
    const [name = "", received = 0, , , , , , , , sent = 0] = line.trim().split(/[\s:]+/);
    table.set(name, { sentBytes: Number(sent), receivedBytes: Number(received) });
  }
  return table;
}
