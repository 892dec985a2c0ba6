/** The doors of this node's workloads: sockets in a folder that the workload sees and cannot write. */
import type { Server, Socket } from "node:net";
import { join } from "node:path";
import { SANDBOX_FILES } from "../../../../contract/sandbox-wire.ts";
import type { NetworkClass } from "../../../workload.ts";
import { EGRESS_SOCKET } from "../../common/daemon-config.ts";
import { openDoor } from "../../common/doors.ts";

export type OnDoor = Record<"platform" | "egress", (uid: string, socket: Socket) => void>;

export class Doors {
  readonly #onDoor: OnDoor;
  readonly #servers = new Map<string, Server[]>();

  constructor(onDoor: OnDoor) {
    this.#onDoor = onDoor;
  }

  /** `dir` is the workload's folder. */
  async open(uid: string, dir: string, network: NetworkClass): Promise<void> {
    this.close(uid);
    const listen = (door: keyof OnDoor, file: string): Promise<Server> =>
      openDoor(join(dir, "host", file), (socket) => this.#onDoor[door](uid, socket));
    const servers = [await listen("platform", SANDBOX_FILES.platform)];
    if (network === "outbound") servers.push(await listen("egress", EGRESS_SOCKET));
    this.#servers.set(uid, servers);
  }

  close(uid: string): void {
    for (const server of this.#servers.get(uid) ?? []) server.close();
    this.#servers.delete(uid);
  }

  closeAll(): void {
    for (const uid of [...this.#servers.keys()]) this.close(uid);
  }
}
