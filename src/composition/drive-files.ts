/**
 * Drives that are mounted on other nodes than their own. Here two streams meet: the process of a mount on this machine talks
 * to the node that has the drive, and this node answers for the drives that it has.
 */
import { chmodSync } from "node:fs";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { FrameReader, frameOf } from "../drivefs/frames.ts";
import { DescriptorShares } from "../drivefs/owner/descriptor-shares.ts";
import { FileSession } from "../drivefs/owner/file-session.ts";
import { serveMount } from "../drivefs/owner/serve-mount.ts";
import type { Greeting, MountAsk } from "../drivefs/wire.ts";
import { filesForNode, type NodeMount } from "../kinds/drive/mounts-of-nodes.ts";
import type { Deps } from "../kinds/port.ts";
import type { Running } from "../lib/lifecycle.ts";
import { openDoor } from "../node/drivers/common/doors.ts";
import type { PeerTalk } from "../peers/peer-door.ts";
import type { Peers } from "../peers/peers.ts";
import { driveSocketOf } from "./machine.ts";
import type { Start } from "./start.ts";

/** The path of the conversation between servers. */
export const DRIVE_FILES = "/drive-files";
/** Mounts of other nodes that this server answers for at once. */
const MOUNTS_MAX = 1024;
/** Mounts on this machine. */
const SOCKETS_MAX = 4096;

export interface DriveFiles extends Running {
  /** Answers a mount on another node. */
  answer: PeerTalk;
  /** Lets the mounts on this machine reach the nodes that have their drives. */
  open(start: Start, peers: Peers): Promise<void>;
}

export function createDriveFiles(deps: () => Deps): DriveFiles {
  const open = new Set<{ destroy(): unknown }>();
  const shares = new DescriptorShares();
  let door: { close(): unknown } | null = null;
  let isStopped = false;

  const answer: PeerTalk = async (input, output) => {
    open.add(output);
    try {
      const { head, rest } = await firstFrame<NodeMount>(input);
      if (open.size > MOUNTS_MAX) throw new Error("too many mounts");
      const { path, readOnly } = head;
      const session = await filesForNode(head, deps())
        .then(({ files, workspace }) => FileSession.open(files, path, readOnly, shares.of(workspace)))
        .catch((error: Error) => error);
      if (session instanceof Error) refuse(output, session.message);
      else await serveMount(session, input, output, rest);
    } finally {
      open.delete(output);
    }
  };

  /** One process of a mount. It comes again when this ends, so nothing is tried twice here. */
  async function relay(socket: Socket, peers: Peers): Promise<void> {
    open.add(socket);
    try {
      const { head, rest } = await firstFrame<MountAsk>(socket);
      const { node, drive, path, readOnly } = head;
      const { input, output } = await peers.talk(node, DRIVE_FILES);
      const mount: NodeMount = { from: deps().nodes.self.id, drive, path, readOnly };
      for (const part of [...frameOf(mount), rest]) output.write(part);
      await Promise.race([pipeline(socket, output), pipeline(input, socket)]);
    } catch {
      // The node is away, or the mount has ended.
    } finally {
      open.delete(socket);
      socket.destroy();
    }
  }

  return {
    answer,
    async open({ config, stack }, peers) {
      const path = driveSocketOf(config);
      if (path === undefined || isStopped) return;
      const server = await openDoor(path, (socket) => void relay(socket, peers), SOCKETS_MAX);
      chmodSync(path, 0o600);
      door = server;
      stack.add(this);
    },
    async stop() {
      isStopped = true;
      door?.close();
      for (const each of open) each.destroy();
    },
  };
}

function refuse(output: Writable, refusal: string): void {
  for (const part of frameOf({ refusal } satisfies Greeting)) output.write(part);
  output.end();
}

/** The first message of a stream, and what came behind it. */
async function firstFrame<Head>(input: Readable): Promise<{ head: Head; rest: Buffer }> {
  const reader = new FrameReader();
  const { promise, resolve, reject } = Promise.withResolvers<Head>();
  const onData = (chunk: Buffer): void => {
    try {
      reader.push(chunk);
      const frame = reader.next<Head>();
      if (!frame) return;
      input.off("data", onData).pause();
      resolve(frame.head);
    } catch (error) {
      reject(error as Error);
    }
  };
  input.on("data", onData);
  for (const name of ["end", "close", "error"]) input.once(name, () => reject(new Error("it ended before it began")));
  return { head: await promise, rest: reader.rest() };
}
