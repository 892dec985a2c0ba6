/** Settings of the processes that share the server's port. */
import { z } from "zod";

export const edgeSettings = {
  edge_processes: {
    env: "BERTH_EDGE_PROCESSES",
    schema: z.coerce.number().int().min(0).max(64).default(0),
    about:
      "Processes that accept connections and forward requests to running workloads; 0 = the server does that itself.",
  },
};
