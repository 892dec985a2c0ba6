/** The server that has the files of a drive, as a process that a test may kill: `node owner-process.ts SOCKET FILES`. */
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { FrameReader, frameOf } from "../../src/drivefs/frames.ts";
import { FileSession } from "../../src/drivefs/owner/file-session.ts";
import { serveMount } from "../../src/drivefs/owner/serve-mount.ts";
import type { MountAsk } from "../../src/drivefs/wire.ts";

const [, , path = "", files = ""] = process.argv;
rmSync(path, { force: true });
createServer((socket) => {
  socket.on("error", () => {});
  void greet(socket);
}).listen(path, () => process.stdout.write("ready\n"));

async function greet(socket: Socket): Promise<void> {
  const reader = new FrameReader();
  const asked = Promise.withResolvers<MountAsk>();
  const onData = (chunk: Buffer): void => {
    reader.push(chunk);
    const frame = reader.next<MountAsk>();
    if (!frame) return;
    socket.off("data", onData).pause();
    asked.resolve(frame.head);
  };
  socket.on("data", onData);
  const { path: part, readOnly } = await asked.promise;
  try {
    await serveMount(await FileSession.open(files, part, readOnly), socket, socket);
  } catch (error) {
    for (const bytes of frameOf({ refusal: String(error) })) socket.write(bytes);
    socket.end();
  }
}
