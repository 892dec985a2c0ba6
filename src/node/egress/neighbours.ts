/** Connections to other workloads of a workload's VPC. */
import { Socket } from "node:net";
import type { Neighbour as NeighbourOf, Neighbours as NeighboursOf } from "../../lib/network/egress/neighbours.ts";
import { dial } from "../dial/dial.ts";
import type { Endpoint } from "../dial/endpoint.ts";
import { EGRESS_DOOR_PORT, PLATFORM_DOOR_PORT } from "../workload.ts";
import { type EgressRefusal, refusal } from "./refusal.ts";

export type Neighbour = NeighbourOf<Endpoint>;
export type Neighbours = NeighboursOf<Endpoint>;

/** Doors on a workload's own loopback, through which it speaks as itself: another workload would speak as that one. */
const DOOR_PORTS = [PLATFORM_DOOR_PORT, EGRESS_DOOR_PORT];

export const doorRefusal = (port: number): EgressRefusal | null =>
  DOOR_PORTS.includes(port)
    ? refusal(403, "port_forbidden", `Port ${port} of a workload is its own way to the platform.`)
    : null;

/** Null: nothing listens there. */
export async function connectNeighbour(
  neighbour: Neighbour,
  port: number,
): Promise<{ socket: Socket; neighbour: Neighbour } | null> {
  const end = neighbour.use();
  const socket = await dial(neighbour.endpoint, port).catch(() => null);
  if (!(socket instanceof Socket)) {
    end();
    return null;
  }
  socket.once("close", end);
  return { socket, neighbour };
}
