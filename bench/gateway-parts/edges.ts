/** Two edge processes against one, on a whole server: requests a second to a sandbox that runs, with a key. */
import { availableParallelism } from "node:os";
import { FakeMachine, fakeDriver } from "../../test/fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../../test/platform.ts";
import { type Load, table } from "../measure.ts";
import { shoot } from "./load.ts";

/** Load, workload and two edge processes each have a core. */
const CORES_MIN = 4;
const ROUND_MS = 2000;
const CONNECTIONS = 64;

/** `upstream` is the port of the program in the sandbox. */
export async function edgeProcesses(upstream: number, rounds: number, isForced: boolean): Promise<void> {
  const cores = availableParallelism();
  if (cores < CORES_MIN) {
    console.log(`\nTwo edge processes against one: not measured; ${cores} cores, and this needs ${CORES_MIN}`);
    if (!isForced) return;
    console.log("--force: what follows tells that the measurement runs, and nothing about two processes");
  }
  const machine = new FakeMachine({ images: ["service/base-image:latest"], portOf: () => upstream });
  const platforms: TestPlatform[] = [];
  try {
    for (const count of ["1", "2"]) {
      const config = { edge_processes: count };
      const platform = await startTestPlatform({ driver: fakeDriver(machine), config });
      platforms.push(platform);
      const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "box" }, spec: {} } });
      if (made.status !== 200) throw new Error(JSON.stringify(made.body));
    }
    const loads = platforms.map((): Load[] => []);
    for (let round = 0; round <= rounds; round += 1)
      for (const [at, platform] of platforms.entries()) {
        const durationMs = round === 0 ? 500 : ROUND_MS;
        const port = Number(new URL(platform.url).port);
        const load = await shoot({ port, request: requestFor(platform), connections: CONNECTIONS, durationMs });
        if (round > 0) loads[at]?.push(load);
      }
    const [one, two] = loads.map((some) => some.toSorted((a, b) => a.perSecond - b.perSecond)[some.length >> 1]);
    const floor = one?.perSecond ?? Number.NaN;
    table(`Edge processes, GET, ${CONNECTIONS} connections (two are to reach 1.7 of one)`, [
      { what: "one", "per second": floor, p99Ms: one?.p99Ms ?? Number.NaN, "of one": 1 },
      {
        what: "two",
        "per second": two?.perSecond ?? Number.NaN,
        p99Ms: two?.p99Ms ?? Number.NaN,
        "of one": (two?.perSecond ?? 0) / floor,
      },
    ]);
  } finally {
    for (const platform of platforms) await platform.stop();
    await machine.dispose();
  }
}

const requestFor = ({ apiKey }: TestPlatform): Buffer =>
  Buffer.from(
    `GET /main/sandboxes/box/port/3000/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${apiKey}\r\nAccept: */*\r\n\r\n`,
  );
