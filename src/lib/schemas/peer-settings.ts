/** Settings of the port between servers of one PostgreSQL. */
import { z } from "zod";

const ADDRESS = /^(\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):\d{1,5}$/;

export const peerSettings = {
  peer_host: {
    env: "BERTH_PEER_HOST",
    schema: z.string().min(1).optional(),
    about:
      "Address on which this server listens for the other servers of one PostgreSQL; absent = the local address of the connection to PostgreSQL.",
  },
  peer_port: {
    env: "BERTH_PEER_PORT",
    schema: z.coerce.number().int().min(0).max(65535).default(0),
    about: "Port for the other servers of one PostgreSQL; 0 = any free one.",
  },
  peer_address: {
    env: "BERTH_PEER_ADDRESS",
    schema: z.string().regex(ADDRESS, "must be host:port").optional(),
    about: "host:port at which the other servers reach this one, when that is not where it listens.",
  },
};
