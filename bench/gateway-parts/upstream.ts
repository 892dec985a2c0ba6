/** The workload behind every proxy of the comparison: as cheap as a server can be, so that the proxies are measured. */
import { createServer, type Socket } from "node:net";

const BODY = "x".repeat(1024);
const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
const SMALL = Buffer.from(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n${BODY}`);
/** A WebSocket that says nothing; clients of the comparison do not check the answer's key. */
const UPGRADED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
const BLOCK = Buffer.alloc(256 * 1024, "x");
const EVENT_EVERY_MS = 5;

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => {});
  let head = "";
  let bodyLeft = 0;
  socket.on("data", (chunk) => {
    let data = chunk;
    while (data.length > 0) {
      if (bodyLeft > 0) {
        const taken = Math.min(bodyLeft, data.length);
        bodyLeft -= taken;
        data = data.subarray(taken);
        if (bodyLeft === 0) socket.write(SMALL);
        continue;
      }
      const end = data.indexOf("\r\n\r\n");
      head += data.toString("latin1", 0, end < 0 ? data.length : end);
      if (end < 0) return;
      data = data.subarray(end + 4);
      bodyLeft = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (bodyLeft === 0) answer(socket, head);
      head = "";
    }
  });
});

function answer(socket: Socket, head: string): void {
  const path = head.split(" ", 2)[1] ?? "";
  if (/^upgrade: websocket/im.test(head)) socket.write(UPGRADED);
  else if (path.endsWith("/events")) stream(socket);
  else if (path.includes("/bytes/")) pour(socket, Number(path.split("/").at(-1)));
  else socket.write(SMALL);
}

/** Each event says when it left; the clock is the machine's, the same in every process. */
function stream(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  const timer = setInterval(() => {
    const event = `data: ${process.hrtime.bigint()}\n\n`;
    socket.write(`${event.length.toString(16)}\r\n${event}\r\n`);
  }, EVENT_EVERY_MS);
  socket.on("close", () => clearInterval(timer));
}

function pour(socket: Socket, size: number): void {
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
  let left = size;
  const more = (): void => {
    while (left > 0) {
      const block = left >= BLOCK.length ? BLOCK : BLOCK.subarray(0, left);
      left -= block.length;
      if (!socket.write(block)) {
        socket.once("drain", more);
        return;
      }
    }
  };
  more();
}

server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
