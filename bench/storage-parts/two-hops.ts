/**
 * 100 MB through the file API of a sandbox, against a bare stream over two hops: a process that hands a request on to
 * a second one, which writes the file. `node two-hops.ts relay PORT | sink FOLDER` is one of the two processes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Pool } from "undici";
import { percentiles, table } from "../measure.ts";
import type { BenchPlatform } from "../sandbox-parts/platform.ts";

const LARGE = Buffer.alloc(100 * 2 ** 20, 1);
const INSIDE = "/filesystem/%2Froot%2Ffile";

export async function fileApi(platform: BenchPlatform, dir: string, rounds: number): Promise<void> {
  const sink = await start("sink", dir);
  const relay = await start("relay", sink.port);
  const pool = new Pool(`http://127.0.0.1:${relay.port}`);
  const sandbox = await platform.create();
  const times = new Map<string, number[]>();
  const time = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const at = performance.now();
    await work();
    times.set(name, [...(times.get(name) ?? []), performance.now() - at]);
  };
  try {
    for (let round = 0; round < rounds; round++) {
      await time("write: two hops", async () =>
        (await pool.request({ method: "PUT", path: "/", body: LARGE })).body.dump(),
      );
      await time("write: file API", () => platform.inside(sandbox, "PUT", INSIDE, LARGE));
      await time("read: two hops", async () => {
        const { body } = await pool.request({ method: "GET", path: "/" });
        for await (const _ of body);
      });
      await time("read: file API", () => platform.inside(sandbox, "GET", INSIDE));
    }
  } finally {
    await pool.destroy();
    await platform.remove(sandbox);
    for (const { child } of [relay, sink]) child.kill("SIGKILL");
  }
  const p50 = (name: string): number => percentiles(times.get(name) ?? []).p50Ms;
  table(
    "100 MB through the file API of a sandbox (ms)",
    ["write", "read"].map((what) => {
      const [bare, api] = [p50(`${what}: two hops`), p50(`${what}: file API`)];
      return { what, "two hops": bare, "file API": api, ratio: api / bare };
    }),
  );
}

async function start(role: string, argument: string): Promise<{ child: ChildProcess; port: string }> {
  const child = spawn(process.execPath, [import.meta.filename, role, argument], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (!child.stdout) throw new Error("no output");
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, port: line.toString().trim() };
}

const ROLES: Record<string, (argument: string) => Server> = {
  relay: (port) =>
    createServer((req, res) => {
      const { method, url: path, headers } = req;
      const onward = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        void pipeline(answer, res).catch(() => {});
      });
      void pipeline(req, onward).catch(() => {});
    }),
  sink: (dir) =>
    createServer((req, res) => {
      const path = join(dir, "two-hops");
      if (req.method === "PUT") void pipeline(req, createWriteStream(path)).then(() => res.end());
      else void pipeline(createReadStream(path), res).catch(() => {});
    }),
};

const [, main, role = "", argument = ""] = process.argv;
if (main === import.meta.filename) {
  const server = ROLES[role]?.(argument);
  if (!server) throw new Error(`there is no ${role}`);
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
}
