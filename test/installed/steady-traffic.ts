/** Clients that ask a server again and again, and remember every request that did not go well. */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { LONG } from "../long.ts";

/** Between an answer and the next request. The long run asks more often; each request costs the server CPU time. */
const PAUSE_MS = LONG ? 25 : 100;

export interface Traffic {
  /** Waits until each client has been answered once more. */
  flows(): Promise<void>;
  /** What went wrong, after the last answers. */
  stop(): Promise<string[]>;
}

interface Client {
  method: string;
  path: string;
  body?: () => unknown;
  /** Keeps its connection. */
  agent: Agent | false;
}

export function startTraffic(url: string, apiKey: string): Traffic {
  const keeping = new Agent({ keepAlive: true, maxSockets: 1 });
  let made = 0;
  const clients: Client[] = [
    { method: "GET", path: "/v0/drives?limit=1", agent: false },
    { method: "GET", path: "/v0/drives?limit=2", agent: keeping },
    {
      method: "POST",
      path: "/v0/drives",
      agent: false,
      body: () => ({ metadata: { name: `made-${made++}` }, spec: {} }),
    },
  ];
  const failures: string[] = [];
  const answered = clients.map(() => 0);
  let waiting: (() => void)[] = [];
  let stopped = false;
  const loops = clients.map(async (client, at) => {
    while (!stopped) {
      const status = await ask(url, apiKey, client).catch((error: Error) => error.message);
      if (status !== 200) failures.push(`${client.method} ${client.path}: ${status}`);
      answered[at] = (answered[at] ?? 0) + 1;
      for (const look of waiting) look();
      await delay(PAUSE_MS);
    }
  });
  return {
    flows() {
      const before = [...answered];
      return new Promise((resolve) => {
        const look = (): void => {
          if (!answered.every((count, at) => count > (before[at] ?? 0))) return;
          waiting = waiting.filter((each) => each !== look);
          resolve();
        };
        waiting.push(look);
      });
    },
    async stop() {
      stopped = true;
      await Promise.all(loops);
      keeping.destroy();
      return failures;
    },
  };
}

function ask(url: string, apiKey: string, { method, path, body, agent }: Client): Promise<number> {
  return new Promise((resolve, reject) => {
    const text = body ? JSON.stringify(body()) : "";
    const headers = {
      authorization: `Bearer ${apiKey}`,
      ...(body ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) } : {}),
    };
    request(`${url}${path}`, { method, headers, agent }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
      response.on("error", reject);
    })
      .on("error", reject)
      .end(text);
  });
}
