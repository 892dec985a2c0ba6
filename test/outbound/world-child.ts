/** Run by world.ts in a network namespace of its own: hosts of the internet, which tell what they see of a client. */
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";

const [, , folder = "", secret = ""] = process.argv;
const seen: string[] = [];

function answer(incoming: IncomingMessage, response: ServerResponse): void {
  seen.push(String(incoming.headers.host));
  // The secret itself is not repeated: a workload that looks for it finds it nowhere.
  const key = incoming.headers["x-key"] === secret ? "with the key" : "without the key";
  response.end(`${incoming.socket.remoteAddress} ${key}`);
}

const EVERY_IPV4 = "0.0.0.0";
createServer(answer).listen(80, EVERY_IPV4);
const file = (name: string): Buffer => readFileSync(join(folder, name));
if (existsSync(join(folder, "host.pem")))
  createTlsServer({ cert: file("host.pem"), key: file("host.key") }, answer).listen(443, EVERY_IPV4);
createServer((_, response) => response.end(JSON.stringify(seen))).listen(9000, EVERY_IPV4);
// A connection that says something as long as it lasts.
createTcpServer((socket) => {
  const saying = setInterval(() => socket.write("."), 50);
  socket.on("error", () => {}).on("close", () => clearInterval(saying));
}).listen(7001, EVERY_IPV4);
createTcpServer((socket) => {
  socket.on("error", () => {});
  socket.end(`seen as ${socket.remoteAddress}`);
}).listen(7000, EVERY_IPV4, () => console.log("up"));
