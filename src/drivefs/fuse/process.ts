/**
 * The process of one mount: `process.ts SOCKET MOUNT WAIT_MS`, with /dev/fuse open as descriptor 3. It ends when the mount ends. A
 * process that is killed is started again with the same descriptor, and the mount goes on.
 */
import { basename, dirname } from "node:path";
import type { MountAsk } from "../wire.ts";
import { Channel } from "./channel.ts";
import { serveDevice } from "./device.ts";
import { Requests } from "./requests.ts";

const FUSE_FD = 3;

const [, , socket = "", mount = "{}", waitMs] = process.argv;
process.chdir(dirname(socket)); // the address of a socket is short, and the path of a data folder may be long
const channel = new Channel(basename(socket), JSON.parse(mount) as MountAsk, { waitMs: Number(waitMs) });
await serveDevice(FUSE_FD, new Requests(channel));
// It would start this process again. A process whose holder is gone is a child of the first process.
if (process.ppid > 1) process.kill(process.ppid, "SIGKILL");
process.exit(0);
