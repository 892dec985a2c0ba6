/** New limits for containers that run or are paused. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Resizing } from "../../../capabilities/resizing.ts";
import type { Limits, Observed } from "../../../workload.ts";
import { belowUse } from "../../common/below-use.ts";
import type { Serial } from "../../common/serial.ts";
import { checkLimits } from "../../common/spec-check.ts";
import { statsSchema } from "../engine/answers.ts";
import { type DockerClient, DockerRefusal } from "../engine/docker-client.ts";
import { limitsOf } from "./container.ts";
import type { Fleet } from "./fleet.ts";

interface Parts {
  client: DockerClient;
  fleet: Fleet;
  serial: Serial;
}

/** Pages of files, by the names of control groups of version 1 and 2; version 1 has both, and its own count is partial. */
const FILE_PAGES = [
  ["total_inactive_file", "inactive_file"],
  ["total_active_file", "active_file"],
] as const;

export class DockerResizing implements Resizing {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  resize(uid: string, limits: Limits): Promise<Observed> {
    const { client, fleet, serial } = this.#parts;
    return serial.run(uid, async () => {
      checkLimits(limits);
      const found = await fleet.living(uid);
      const { pids } = fleet.observed(found).limits;
      const path = `/containers/${found.container.Id}`;
      const held = await this.#heldBytes(path);
      if (held > limits.memoryMb * 1024 * 1024) throw belowUse(limits, held);
      const body = limitsOf({ ...(pids === undefined ? {} : { pids }), ...limits });
      try {
        await client.text("POST", `${path}/update`, { body });
      } catch (error) {
        if (!(error instanceof DockerRefusal)) throw error;
        throw new PlatformError("conflict", `Docker does not change the limits: ${error.message}`, { cause: error });
      }
      return fleet.observed(await fleet.living(uid));
    });
  }

  async #heldBytes(path: string): Promise<number> {
    const query = { stream: false, "one-shot": true };
    const { memory_stats } = await this.#parts.client.json(statsSchema, "GET", `${path}/stats`, { query });
    const { usage, stats } = memory_stats;
    const pages = FILE_PAGES.map((names) => names.map((name) => stats?.[name]).find((each) => each !== undefined) ?? 0);
    return (usage ?? 0) - pages.reduce((sum, each) => sum + each, 0);
  }
}
