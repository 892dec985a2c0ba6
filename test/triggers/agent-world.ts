/**
 * What is around an agent in the tests of triggers: the server inside it, played by this process, and the address that
 * is called back. Both write down all they get, so that what was promised can be compared with what came.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type Clock, MINUTE_MS } from "../../src/lib/time/clock.ts";
import { FakeMachine } from "../fake-driver.ts";

export interface Got {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

export interface AgentWorld extends AsyncDisposable {
  /** A machine on which every port of every workload leads to the agent. */
  machine: FakeMachine;
  agentPort: number;
  callbackUrl: string;
  requests: Got[];
  callbacks: Got[];
  /** Ids of requests that came while the same one was being answered. */
  doubled: string[];
  /** Statuses to answer the next requests with; 200 when there are none. */
  answers: { agent: number[]; callback: number[] };
  /** Requests that are being answered; they wait while the gate is shut. */
  gate: { shut(): void; open(): void };
}

export async function agentWorld(): Promise<AgentWorld> {
  const requests: Got[] = [];
  const callbacks: Got[] = [];
  const doubled: string[] = [];
  const active = new Set<string>();
  const answers: AgentWorld["answers"] = { agent: [], callback: [] };
  let opened = Promise.resolve();
  let open = (): void => {};
  const agent = await listening(
    createServer(async (request, response) => {
      const got = await read(request);
      requests.push(got);
      const id = String(got.headers["x-request-id"]);
      if (active.has(id)) doubled.push(id);
      active.add(id);
      response.once("close", () => active.delete(id));
      await opened;
      response.statusCode = answers.agent.shift() ?? 200;
      response.end(`seen ${got.body}`);
    }),
  );
  const receiver = await listening(
    createServer(async (request, response) => {
      callbacks.push(await read(request));
      response.statusCode = answers.callback.shift() ?? 200;
      response.end();
    }),
  );
  const agentPort = portOf(agent);
  const machine = agentMachine(agentPort);
  return {
    machine,
    agentPort,
    callbackUrl: `http://127.0.0.1:${portOf(receiver)}/done`,
    requests,
    callbacks,
    doubled,
    answers,
    gate: {
      shut() {
        opened = new Promise((resolve) => {
          open = resolve;
        });
      },
      open: () => open(),
    },
    async [Symbol.asyncDispose]() {
      open();
      for (const server of [agent, receiver]) {
        server.close();
        server.closeAllConnections();
      }
      await machine.dispose();
    },
  };
}

export const AGENT_IMAGE = "service/base-image:latest";

/** A machine whose workloads are all the server on this port, and end with the process that plays the machine. */
export function agentMachine(agentPort: number): FakeMachine {
  const machine = new FakeMachine({ portOf: () => agentPort });
  machine.images.set(AGENT_IMAGE, { ...machine.addImage(AGENT_IMAGE), argv: ["cat"] });
  return machine;
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function read(request: IncomingMessage): Promise<Got> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { method = "", url = "", headers } = request;
  return { method, url, headers, body: Buffer.concat(chunks).toString() };
}

type Nothing = false | 0 | "" | null | undefined;

const LOOK_MS = 20;
/** Far longer than anything takes, also on a busy machine after a kill: what waits in vain fails. */
const PATIENCE_MS = 90_000;

/** Waits for a state that no event announces. */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<Exclude<T, Nothing>> {
  for (const giveUp = Date.now() + PATIENCE_MS; ; ) {
    const found = await look();
    if (found) return found as Exclude<T, Nothing>;
    if (Date.now() > giveUp) throw new Error(`never happened: ${what}`);
    await pause(LOOK_MS);
  }
}

/** A clock on which a minute begins: there is time to act on that minute. */
export function minuteClock(): Clock {
  const aheadMs = MINUTE_MS - (Date.now() % MINUTE_MS);
  return { now: () => Date.now() + aheadMs };
}

/** Half a minute is far longer than it takes to fire. */
const LEFT_MS = MINUTE_MS / 2;

/** The minute that has begun, with time left in it to act on: its start, and a pattern that comes then every day. */
export async function thisMinute(clock: Clock): Promise<{ atMs: number; pattern: string }> {
  const nowMs = await until("a minute with time left", () => {
    const ms = clock.now();
    return ms % MINUTE_MS < MINUTE_MS - LEFT_MS && ms;
  });
  const begun = new Date(nowMs - (nowMs % MINUTE_MS));
  return { atMs: begun.getTime(), pattern: `${begun.getUTCMinutes()} ${begun.getUTCHours()} * * *` };
}
