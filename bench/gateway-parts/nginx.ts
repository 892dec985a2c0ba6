/** nginx in front of the same upstream: the machine's own, or the one of Debian's archive. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { debianEnv, unpackedDebian } from "../../test/debian-packages.ts";
import { freePort } from "../../test/free-port.ts";
import { childrenOf, type Subject } from "./subject.ts";

export interface Nginx {
  plain: Subject;
  /** HTTPS and HTTP/2, with the certificate of the run. */
  secure: Subject;
}

export async function startNginx(children: ChildProcess[], dir: string, upstream: number): Promise<Nginx | null> {
  const installed = (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, "nginx")));
  const root = installed ? "/" : unpackedDebian("nginx", ["nginx", "libpcre2-8-0", "libssl3", "zlib1g"]);
  if (root === null) {
    console.log("nginx: skipped; install it to see the ratio (apt-get install nginx)");
    return null;
  }
  const [port, tlsPort] = [await freePort(), await freePort()];
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${dir}/${name};`);
  writeFileSync(
    join(dir, "nginx.conf"),
    `${process.getuid?.() === 0 ? "user root;" : ""} worker_processes auto; daemon off; pid ${dir}/pid; error_log ${dir}/error.log;
events { worker_connections 16384; }
http { access_log off; ${temp.join(" ")}
map $http_upgrade $connection_field { default upgrade; '' ''; }
upstream up { server 127.0.0.1:${upstream}; keepalive 256; keepalive_requests 10000000; }
server { listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl http2;
ssl_certificate ${dir}/cert.pem; ssl_certificate_key ${dir}/key.pem;
keepalive_requests 10000000; client_max_body_size 0; proxy_request_buffering off;
location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection $connection_field; proxy_buffering off; proxy_read_timeout 600s; } } }`,
  );
  const env = { ...process.env, ...debianEnv(root) };
  const child = spawn("nginx", ["-e", join(dir, "error.log"), "-c", join(dir, "nginx.conf")], {
    env,
    stdio: "inherit",
  });
  children.push(child);
  const failed = await Promise.race([
    once(child, "error").then(() => true),
    once(child, "exit").then(() => true),
    reachable(port).then(() => false),
  ]);
  if (failed) throw new Error("nginx did not start");
  const pids = (): number[] => [child.pid ?? 0, ...childrenOf(child.pid ?? 0)];
  return { plain: { name: "nginx", port, pids }, secure: { name: "nginx", port: tlsPort, pids } };
}

async function reachable(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const outcome = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "close").then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (outcome) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
