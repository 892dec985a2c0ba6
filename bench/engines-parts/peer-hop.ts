/**
 * The cost of a peer hop: the same request to the server that has the workload, and to a server that hands it on. Both
 * servers, the workload and the client are one process, so the difference is work and not distance.
 */
import { Agent, request } from "node:http";
import { AUTH, answering, OK, rawUpstream, startHandingGateway, startTestGateway } from "../../test/gateway/harness.ts";
import { type Load, load, table } from "../measure.ts";

const WARM_MS = 1000;
const RUN_MS = 3000;
/** Parts of a run, in turn, so that a busy moment of the machine hits both ways. */
const ROUNDS = 3;

export async function measurePeerHop(): Promise<void> {
  await using workload = await rawUpstream(answering(OK));
  await using direct = await startTestGateway({ upstream: workload.port });
  await using handed = await startHandingGateway({ upstream: workload.port });
  const agent = new Agent({ keepAlive: true });
  const [name = "", value = ""] = AUTH.trim().split(": ");
  const call = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const options = { agent, port, host: "127.0.0.1", path: "/ws/agents/a", headers: { [name]: value } };
      request(options, (response) => response.resume().once("end", resolve))
        .once("error", reject)
        .end();
    });
  const ways = { "local dial": direct.port, "peer hop": handed.port };
  for (const port of Object.values(ways)) await load(1, WARM_MS, () => call(port));
  const best: Record<string, Load> = {};
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [way, port] of Object.entries(ways)) {
      const measured = await load(1, RUN_MS, () => call(port));
      if (!best[way] || measured.p50Ms < best[way].p50Ms) best[way] = measured;
    }
  agent.destroy();
  const base = best["local dial"]?.p50Ms ?? 0;
  table(
    "One client, best of three rounds (aim: a hop adds at most 0.3 ms to the median)",
    Object.entries(best).map(([way, { p50Ms, p95Ms }]) => ({ way, p50Ms, p95Ms, addedMs: p50Ms - base })),
  );
}
