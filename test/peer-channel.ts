/** A peer listener of one node, and the connections of another node to it. */
import { createHash } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { openPeerListener, type PeerListener, type PeerListenerOptions } from "../src/peers/peer-listener.ts";
import { createPeers, type Peers, type PeersOptions } from "../src/peers/peers.ts";

/** Id of the node with the listener, and of the node that dials. */
export const OWNER = "node-owner";
export const ASKER = "node-asker";

export const keyOf = (secret: string): Buffer => createHash("sha256").update(secret).digest();

export interface PeerChannel {
  listener: PeerListener;
  peers: Peers;
  /** Connections that the listener refused. */
  refused: Error[];
  stop(): Promise<void>;
}

export async function peerChannel(
  accept: (socket: TLSSocket) => void,
  options: {
    listener?: Partial<PeerListenerOptions>;
    peers?: Partial<PeersOptions>;
    /** Where the other node is dialled; absent = at its listener. */
    port?: () => number;
  } = {},
): Promise<PeerChannel> {
  const key = keyOf("shared by all servers of one database");
  const refused: Error[] = [];
  const listener = await openPeerListener({
    ...{ self: OWNER, key, accept, host: "127.0.0.1", port: 0 },
    onRefused: (error) => refused.push(error),
    ...options.listener,
  });
  const peers = createPeers({
    ...{ self: ASKER, key },
    directory: {
      isLive: () => true,
      addressOf: () => ({ host: "127.0.0.1", port: options.port?.() ?? listener.address.port }),
      nameOf: (node) => `name of ${node}`,
    },
    ...options.peers,
  });
  return {
    ...{ listener, peers, refused },
    async stop() {
      await peers.stop();
      await listener.stop();
    },
  };
}
