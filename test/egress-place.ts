/** The egress proxy on a loopback port, with rules that a test changes. Every name leads to this machine. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { compileNetwork, type NetworkSpec } from "../src/kinds/workload/network.ts";
import type { Refusal, RulesSource, WorkloadRules } from "../src/lib/network/egress/workload-rules.ts";
import { type EgressOptions, startEgressProxy } from "../src/node/egress/egress-proxy.ts";

export class ChangingRules implements RulesSource {
  #rules: WorkloadRules;
  readonly #listeners = new Set<(uid: string) => void>();

  constructor(network: NetworkSpec) {
    this.#rules = compileNetwork(network);
  }

  set(network: NetworkSpec): void {
    this.#rules = compileNetwork(network);
    for (const listener of this.#listeners) listener("box");
  }

  async of(): Promise<WorkloadRules> {
    return this.#rules;
  }

  onChange(listener: (uid: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const END_OF_HEAD = "\r\n\r\n";

export interface RuledPlace {
  rules: ChangingRules;
  refused: Refusal[];
  resolved: string[];
  /** Opens a tunnel; the head of the proxy's answer and the socket. */
  tunnel(authority: string): Promise<{ head: string; socket: Socket }>;
  /** Sends a text and reads until the proxy hangs up. */
  ask(text: string): Promise<string>;
}

export async function ruledPlace(
  t: TestContext,
  network: NetworkSpec,
  options: EgressOptions = {},
): Promise<RuledPlace> {
  const rules = new ChangingRules(network);
  const refused: Refusal[] = [];
  const resolved: string[] = [];
  const proxy = startEgressProxy({
    rules,
    allowed: (_, __, address) => address === "127.0.0.1",
    resolve: async (host) => {
      resolved.push(host);
      return ["127.0.0.1"];
    },
    onRefused: (_, refusal) => refused.push(refusal),
    ...options,
  });
  const port = await listen(
    t,
    createServer({ allowHalfOpen: true }, (socket) => proxy.serve("box", socket)),
  );
  t.after(() => proxy.stop());
  const open = (): Socket => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {}); // the proxy may cut the connection
    t.after(() => socket.destroy());
    return socket;
  };
  return {
    rules,
    refused,
    resolved,
    async tunnel(authority) {
      const socket = open();
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: x\r\n\r\n`);
      let head = Buffer.alloc(0);
      while (!head.includes(END_OF_HEAD)) head = Buffer.concat([head, ...((await once(socket, "data")) as [Buffer])]);
      const end = head.indexOf(END_OF_HEAD) + END_OF_HEAD.length;
      if (!head.toString().startsWith("HTTP/1.1 200")) return { head: head.toString(), socket };
      // A server that speaks first may have been quick.
      socket.pause();
      if (head.length > end) socket.unshift(head.subarray(end));
      return { head: head.toString("utf8", 0, end), socket };
    },
    async ask(text) {
      const socket = open();
      socket.write(text);
      let answer = "";
      for await (const chunk of socket) answer += chunk;
      return answer;
    },
  };
}
