/** Pebble, a certificate authority for tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Agent, request } from "undici";
import { unpackedDebian } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";
import { testAuthority } from "../tls-credential.ts";

export interface Pebble {
  directory: string;
  /** File with the authority of Pebble's own address. */
  caFile: string;
  /** What Pebble knows of a certificate: Valid or Revoked. */
  statusOf(serial: string): Promise<string>;
  /** How many certificates it has issued since its first start. */
  issued(): number;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Removes its files, too. */
  dispose(): Promise<void>;
}

/** The machine's own, or the one of Debian's archive. */
export function pebbleProgram(): string | null {
  const installed = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "pebble"));
  return installed.find(existsSync) ?? unpackedProgram();
}

function unpackedProgram(): string | null {
  const root = unpackedDebian("pebble", ["pebble"]);
  return root === null ? null : join(root, "usr/bin/pebble");
}

export async function createPebble(
  program: string,
  ports: { httpPort: number; tlsPort: number; dns: string },
): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), "berth-pebble-"));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const authority = testAuthority("authority of pebble's address");
  const { certificate, key } = authority.credentialOf("127.0.0.1");
  const caFile = file("ca.pem", authority.certificate);
  const [listen, manage] = [await freePort(), await freePort()];
  const pebble = {
    listenAddress: `127.0.0.1:${listen}`,
    managementListenAddress: `127.0.0.1:${manage}`,
    certificate: file("cert.pem", certificate),
    privateKey: file("key.pem", key),
    httpPort: ports.httpPort,
    tlsPort: ports.tlsPort,
    ocspResponderURL: "",
  };
  const config = file("pebble.json", JSON.stringify({ pebble }));
  const log = openSync(file("log", ""), "a");
  const agent = new Agent({ connect: { ca: authority.certificate } });
  const directory = `https://127.0.0.1:${listen}/dir`;
  let child: ChildProcess | null = null;
  const stop = async (): Promise<void> => {
    const running = child;
    child = null;
    if (!running || running.exitCode !== null) return;
    const ended = once(running, "exit");
    running.kill("SIGKILL");
    await ended;
  };
  return {
    directory,
    caFile,
    stop,
    async statusOf(serial) {
      const url = `https://127.0.0.1:${manage}/cert-status-by-serial/${serial.toLowerCase()}`;
      const { body } = await request(url, { dispatcher: agent });
      const { Status } = (await body.json()) as { Status: string };
      return Status;
    },
    issued: () => readFileSync(join(folder, "log"), "utf8").split("Issued certificate serial").length - 1,
    async start() {
      // No authorization is used twice, so that every order has its challenge.
      const env = { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_AUTHZREUSE: "0" };
      child = spawn(program, ["-config", config, "-dnsserver", ports.dns], { env, stdio: ["ignore", log, log] });
      for (const deadline = Date.now() + 60_000; ; ) {
        const answer = await request(directory, { dispatcher: agent }).catch(() => null);
        await answer?.body.dump();
        if (answer?.statusCode === 200) return;
        if (Date.now() > deadline) throw new Error("pebble does not answer");
        await pause(50);
      }
    },
    async dispose() {
      await stop();
      await agent.destroy();
      closeSync(log);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
