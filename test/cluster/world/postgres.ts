/** A PostgreSQL of the machine that pods reach at the node's address. */
import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { type PrivatePostgres, startPrivatePostgres } from "../../postgres.ts";
import { NODE_IP } from "./addresses.ts";

export interface ClusterPostgres extends PrivatePostgres {
  /** For pods. */
  podUrl: string;
}

export async function startClusterPostgres(): Promise<ClusterPostgres> {
  const postgres = await startPrivatePostgres();
  if ("reason" in postgres) throw new Error(postgres.reason);
  const { port } = new URL(postgres.url);
  const relay = createServer((near) => {
    const far = createConnection(Number(port), "127.0.0.1");
    near.pipe(far).pipe(near);
    near.once("error", () => far.destroy());
    far.once("error", () => near.destroy());
  });
  relay.listen(Number(port), NODE_IP);
  await once(relay, "listening");
  return {
    ...postgres,
    podUrl: postgres.url.replace("127.0.0.1", NODE_IP),
    stop: async () => {
      relay.close();
      await postgres.stop();
    },
  };
}
