/** Other gateways of models, for the same load: each where it can be found, and a line where it cannot. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RawTarget } from "./raw-load.ts";

export interface Peer {
  name: string;
  child: ChildProcess;
  target: Omit<RawTarget, "body">;
}

interface PeerProgram {
  name: string;
  /** The flag that names its folder. */
  flag: string;
  install: string;
  port: number;
  /** The program below the folder. */
  file: string;
  /** `folder` is for files of the run. */
  start(program: string, port: number, baseUrl: string, folder: string): ChildProcess;
  headers(baseUrl: string): Record<string, string>;
}

/** LiteLLM refuses to start without a key of some length. */
const LITELLM_KEY = "sk-bench-0123456789abcdef0123456789abcdef0123456789abcdef";

const PEERS: readonly PeerProgram[] = [
  {
    name: "Portkey",
    flag: "portkey",
    install: "npm install @portkey-ai/gateway",
    port: 18_787,
    file: "node_modules/@portkey-ai/gateway/build/start-server.js",
    start: (program, port) => spawn(process.execPath, [program, "--headless", `--port=${port}`], { stdio: "ignore" }),
    headers: (baseUrl) => ({ "x-portkey-provider": "openai", "x-portkey-custom-host": baseUrl }),
  },
  {
    name: "LiteLLM",
    flag: "litellm",
    install: 'python3 -m venv . && bin/pip install "litellm[proxy]"',
    port: 18_788,
    file: "bin/litellm",
    start(program, port, baseUrl, folder) {
      const config = join(folder, "litellm.json");
      const litellm_params = { model: "openai/gpt-4o-mini", api_base: baseUrl, api_key: "key" };
      writeFileSync(config, JSON.stringify({ model_list: [{ model_name: "gpt-4o-mini", litellm_params }] }));
      const args = ["--config", config, "--host", "127.0.0.1", "--port", String(port), "--telemetry", "False"];
      const env = {
        ...process.env,
        LITELLM_LOCAL_MODEL_COST_MAP: "True",
        LITELLM_LOG: "ERROR",
        LITELLM_MASTER_KEY: LITELLM_KEY,
      };
      return spawn(program, args, { stdio: "ignore", env });
    },
    headers: () => ({ authorization: `Bearer ${LITELLM_KEY}` }),
  },
];

/** How long a peer may take to listen: one of them loads a thousand modules. */
const START_MS = 180_000;

/** Starts the peers whose folders the flags name, or that stand in this repository. */
export async function startPeers(flags: readonly string[], baseUrl: string, children: ChildProcess[]): Promise<Peer[]> {
  const folder = mkdtempSync(join(tmpdir(), "berth-bench-peers-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const started: Peer[] = [];
  for (const peer of PEERS) {
    const program = programOf(peer, flags);
    if (program === null) {
      console.log(`${peer.name}: skipped; run \`${peer.install}\` in some folder and give it with --${peer.flag}=DIR.`);
      continue;
    }
    const child = peer.start(program, peer.port, baseUrl, folder);
    children.push(child);
    await listening(peer, child);
    const headers = { authorization: "Bearer key", ...peer.headers(baseUrl) };
    started.push({ name: peer.name, child, target: { port: peer.port, path: "/v1/chat/completions", headers } });
  }
  return started;
}

function programOf({ flag, file }: PeerProgram, flags: readonly string[]): string | null {
  const given = flags.find((one) => one.startsWith(`--${flag}=`))?.slice(flag.length + 3);
  const places = [...(given ? [given] : []), join(import.meta.dirname, "../..")];
  return places.map((place) => join(place, file)).find((path) => existsSync(path)) ?? null;
}

async function listening({ name, port }: PeerProgram, child: ChildProcess): Promise<void> {
  for (const giveUp = Date.now() + START_MS; Date.now() < giveUp && child.exitCode === null; ) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true));
      socket.on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${name} does not listen`);
}
