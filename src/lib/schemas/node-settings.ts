/** Settings of a server as a machine, and among those of one PostgreSQL. */
import { z } from "zod";

export const nodeSettings = {
  node_name: {
    env: "BERTH_NODE_NAME",
    schema: z.string().min(1).max(200).optional(),
    about: "Name of this server among those of one PostgreSQL; absent = the machine's.",
  },
  node_lost_after: {
    env: "BERTH_NODE_LOST_AFTER",
    schema: z.coerce.number().int().min(2).max(86_400).default(20),
    about: "Seconds without a heartbeat after which the other servers of one PostgreSQL count a server as lost.",
  },
  node_full_at: {
    env: "BERTH_NODE_FULL_AT",
    schema: z.coerce.number().int().min(1).max(100).default(90),
    about:
      "Percent of a server's memory in use from which new workloads go to another server of one PostgreSQL; 100 = never.",
  },
  memory_free_min: {
    env: "BERTH_MEMORY_FREE_MIN",
    schema: z.coerce.number().int().min(0).optional(),
    about:
      "MB of the machine's memory to keep available: below, sandboxes that are not in use sleep early, and those in gVisor on disk. 0 = off; absent = a twentieth of the memory.",
  },
} as const;
