/** Runs the machine's own network tools. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";

const TOOL_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin", LC_ALL: "C" };
const execute = promisify(execFile);

export const run = (program: string, args: string[]): Promise<{ stdout: string }> =>
  execute(program, args, { env: TOOL_ENV });

/** Runs a tool with the text on its standard input. */
export async function feed(program: string, args: string[], text: string): Promise<void> {
  const child: ChildProcess = spawn(program, args, { env: TOOL_ENV, stdio: ["pipe", "ignore", "pipe"] });
  let complaint = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-1000);
  });
  child.stdin?.on("error", () => {}); // the tool ended early; its exit code says why
  child.stdin?.end(`${text}\n`);
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${program}: ${complaint.trim() || `exit ${code}`}`);
}
