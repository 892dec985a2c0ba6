/** The connections between this server and the other servers of its PostgreSQL. On SQLite there are none. */
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect } from "node:net";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import type { GatewayPeers } from "../gateway/deps.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { fromWire, toWire, type WiredAnswer, type WiredReplay } from "../gateway/replay-wire.ts";
import type { Edge } from "../http/edge.ts";
import type { MachineFinding, Platform } from "../kinds/port.ts";
import { type AllLogs, createAllLogs } from "../node/logs/all-logs.ts";
import type { LogPage, LogQuery } from "../node/logs/log-store.ts";
import type { Nodes } from "../node/nodes.ts";
import { createPeerDoor, type PeerTalk } from "../peers/peer-door.ts";
import { openPeerListener } from "../peers/peer-listener.ts";
import { createPeers, type Peers, textOf } from "../peers/peers.ts";
import type { Foundation } from "./foundation.ts";
import type { StartedNode } from "./node.ts";
import type { Start } from "./start.ts";

/** Bytes of an answer that is read whole. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024;
/** Time limit of a question to another node. */
const QUESTION_MS = 30_000;
const POSTGRES_PORT = 5432;

export interface StartedPeers {
  peers: Peers;
  gateway: GatewayPeers;
  /** Answers the questions of other servers. */
  door: RequestListener;
  /** Lets the other servers in, through the port that serves clients too, and tells them where. */
  open(edge: Edge): Promise<void>;
}

export async function startPeers(
  { config, log, stack }: Start,
  { store }: Foundation,
  { nodeRegistry, node }: StartedNode,
  gatewayOf: () => Gateway,
  examine: () => Promise<MachineFinding[]>,
  talks: Readonly<Record<string, PeerTalk>>,
): Promise<StartedPeers | null> {
  if (store.database.dialect !== "postgres") return null;
  const { nodes } = nodeRegistry;
  const identity = { self: nodes.self.id, key: store.keyFor("peers") };
  const peers = stack.add(createPeers({ ...identity, directory: directoryOf(nodes) }));
  let edge: Edge | null = null;
  const host = config.peer_host ?? (await addressTowards(config));
  const listener = stack.add(
    await openPeerListener({
      ...identity,
      ...{ host, port: config.peer_port },
      accept: (socket) => (edge ? edge.accept(socket) : socket.destroy()),
      onRefused: (error) => log.debug({ err: error }, "a connection to the port for servers was refused"),
    }).catch((cause: unknown) => {
      const port = config.peer_port === 0 ? "a port" : `port ${config.peer_port}`;
      throw new PlatformError(
        "conflict",
        `The server cannot listen on ${port} of ${host} for the other servers. Choose with BERTH_PEER_HOST and BERTH_PEER_PORT.`,
        { cause },
      );
    }),
  );
  return {
    peers,
    gateway: {
      dial: peers.dial,
      replay: async (node, { signal, ...asked }) =>
        fromWire(
          JSON.parse(
            await textOf(await peers.ask(node, { path: "/replay", body: asked, signal }), ANSWER_BYTES_MAX),
          ) as WiredAnswer,
        ),
    },
    door: createPeerDoor(
      {
        "/findings": examine,
        "/image-part": async (asked) => {
          const { image, digest } = asked as { image: string; digest: string };
          const part = await (await node.driver.capability("images"))?.part?.(image, digest);
          if (!part) throw new PlatformError("not_found", "This server does not have that part of the image.");
          return part.open();
        },
        "/logs": (query) => node.logs.query(query as LogQuery),
        "/log-names": (asked) => {
          const { workspace, plural } = asked as { workspace: string; plural: string };
          return node.logs.names(workspace, plural);
        },
        "/replay": async (asked, signal) =>
          toWire(await gatewayOf().replay({ ...(asked as WiredReplay), handedOn: true, signal })),
      },
      talks,
    ),
    async open(opened) {
      edge = opened;
      await nodeRegistry.setAddress(config.peer_address ?? written(listener.address));
    },
  };
}

/** Reads the lines of all nodes. A node that is away is asked too, which fails at once. */
export function allLogsOf({ node, nodeRegistry }: StartedNode, started: StartedPeers | null): AllLogs {
  const { nodes } = nodeRegistry;
  const selfName = (): string => nodes.self.name;
  if (started === null) return createAllLogs(node.logs, selfName, null);
  const ask = asking(started.peers);
  return createAllLogs(node.logs, selfName, {
    nodes: () => nodes.list().filter(({ id }) => id !== nodes.self.id),
    query: (id, query) => ask<LogPage>(id, "/logs", query),
    names: (id, workspace, plural) => ask<string[]>(id, "/log-names", { workspace, plural }),
  });
}

/** Checks the machine of this node, or has another node check its own. */
export function findingsOf(
  { nodeRegistry: { nodes } }: StartedNode,
  started: StartedPeers | null,
  examine: () => Promise<MachineFinding[]>,
): Platform["findingsOf"] {
  return (id) =>
    id === nodes.self.id || started === null ? examine() : asking(started.peers)<MachineFinding[]>(id, "/findings", {});
}

/** Asks one node after the other: an image that one of them made or pulled is nowhere else. */
export function partOfPeerOf(
  { nodeRegistry: { nodes } }: StartedNode,
  started: StartedPeers | null,
): Platform["partOfPeer"] {
  return async (image, digest) => {
    for (const { id } of started === null ? [] : nodes.list()) {
      if (id === nodes.self.id || !nodes.isLive(id)) continue;
      try {
        return (await started?.peers.ask(id, { path: "/image-part", body: { image, digest } })) ?? null;
      } catch {
        // That node is away, or does not have it.
      }
    }
    return null;
  };
}

/** Asks another node and reads its whole answer. */
const asking =
  (peers: Peers) =>
  async <T>(id: string, path: string, body: unknown): Promise<T> =>
    JSON.parse(
      await textOf(await peers.ask(id, { path, body, signal: AbortSignal.timeout(QUESTION_MS) }), ANSWER_BYTES_MAX),
    );

const written = ({ host, port }: { host: string; port: number }): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

function directoryOf(nodes: Nodes) {
  return {
    isLive: (node: string) => nodes.isLive(node),
    nameOf: (node: string) => nodes.nameOf(node),
    addressOf: (node: string) => {
      const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(nodes.addressOf(node) ?? "") ?? [];
      const host = bracketed ?? plain;
      return host === undefined ? null : { host, port: Number(port) };
    },
  };
}

/** The address of this machine on the way to PostgreSQL, which the other servers reach too. */
async function addressTowards({ database_url }: Config): Promise<string> {
  const url = database_url === undefined ? null : URL.parse(database_url);
  if (!url?.hostname) return "127.0.0.1"; // through a Unix socket
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const socket = connect({ host, port: Number(url.port) || POSTGRES_PORT });
  try {
    await once(socket, "connect");
    return socket.localAddress ?? "127.0.0.1";
  } finally {
    socket.destroy();
  }
}
