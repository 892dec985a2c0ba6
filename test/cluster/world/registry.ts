/** The registry of the cluster, which stands for all others and has no image: images of tests are imported. */
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { NODE_IP, NODES } from "./addresses.ts";

const PORT = 5000;
const URL = `http://${NODE_IP}:${PORT}`;

/** The folder that containerd finds its registries in. */
export function writeRegistries(dir: string): string {
  const folder = join(dir, "registries");
  writeHosts(join(folder, "_default"), URL);
  return folder;
}

/** Lets containerd find a registry without TLS at its own address. */
export function addPlainRegistry(dir: string, host: string): void {
  for (const { name } of NODES) writeHosts(join(dir, name, "registries", host), `http://${host}`);
}

function writeHosts(folder: string, url: string): void {
  mkdirSync(folder, { recursive: true });
  const hosts = `server = "${url}"\n[host."${url}"]\n  capabilities = ["pull", "resolve"]\n`;
  writeFileSync(join(folder, "hosts.toml"), hosts);
}

export async function startRegistry(): Promise<Server> {
  const server = createServer((_, response) => {
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN", message: "manifest unknown" }] }));
  });
  server.listen(PORT, NODE_IP);
  await once(server, "listening");
  return server;
}
