/**
 * `/port/{n}/rest` below a sandbox's address leads to port n inside it. A caller who may use the sandbox's API may use
 * its ports, so the path is split after admission; the rest of the path stays as it is, byte for byte.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Admitted } from "./admit.ts";
import { API_PORT } from "./preview-lookup.ts";

const PORT_PATH = /^\/port\/(\d{1,9})(?=[/?]|$)/;
const PORT_MAX = 65_535;

export interface PortPassage {
  admitted: Admitted;
  /** The part that was removed from the path. */
  taken: string;
}

/** `named` is the port that the address itself names; undefined = the path may. */
export function throughPort(admitted: Admitted, named?: number): PortPassage {
  const { workload, path } = admitted;
  if (named !== undefined) return { taken: "", admitted: { ...admitted, workload: { ...workload, door: named } } };
  const found = workload.kind === "sandbox" && workload.door === "api" ? PORT_PATH.exec(path) : null;
  if (!found) return { admitted, taken: "" };
  const taken = found[0];
  const port = Number(found[1]);
  if (port === 0 || port > PORT_MAX) throw new GatewayError("BAD_REQUEST", `There is no port ${port}.`);
  const rest = path.slice(taken.length);
  return {
    taken,
    admitted: {
      ...admitted,
      path: rest.startsWith("/") ? rest : `/${rest}`,
      workload: { ...workload, door: port === API_PORT ? "api" : port },
    },
  };
}
