/** `runsc` without Berth, as a reference of the same run: one program that waits, written once and restored many times. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const WAIT = ["node", "-e", "setInterval(() => {}, 1000)"];

/** Milliseconds until `count` restores are done, `atOnce` at a time, and each of them alone. */
export async function bareRestores(
  runsc: string,
  count: number,
  atOnce: number,
): Promise<{ allMs: number; eachMs: number[]; failed: number }> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bare-"));
  const bundle = join(dir, "bundle");
  const image = join(dir, "image");
  for (const each of [bundle, image]) mkdirSync(each);
  writeFileSync(join(bundle, "config.json"), JSON.stringify(bundleOf()));
  const flags = ["--root", join(dir, "state"), "--network=none", "--ignore-cgroups", "--overlay2=none"];
  const call = (...command: string[]): Promise<unknown> => run(runsc, [...flags, ...command]);
  const ids = Array.from({ length: count }, (_, index) => `copy-${index}`);
  const eachMs: number[] = [];
  let failed = 0;
  try {
    // Detached programs must not hold the pipes of this process.
    await quiet(runsc, [...flags, "run", "--detach", "--bundle", bundle, "source"]);
    await new Promise((resolve) => setTimeout(resolve, 1000)); // the program has loaded
    await call("checkpoint", "--compression=none", "--image-path", image, "source");
    const left = [...ids];
    const began = performance.now();
    const work = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        const at = performance.now();
        const restore = ["restore", "--detach", "--bundle", bundle, "--image-path", image, id];
        await quiet(runsc, [...flags, ...restore]).then(
          () => eachMs.push(performance.now() - at),
          () => failed++,
        );
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return { allMs: performance.now() - began, eachMs, failed };
  } finally {
    for (const id of ["source", ...ids]) await call("delete", "--force", id).catch(() => {});
    rmSync(dir, { recursive: true, force: true });
  }
}

const quiet = (program: string, args: string[]): Promise<unknown> =>
  run("sh", ["-c", '"$@" </dev/null >/dev/null 2>&1', "sh", program, ...args]);

const bundleOf = (): object => ({
  ociVersion: "1.0.2",
  process: { user: { uid: 0, gid: 0 }, args: WAIT, env: [`PATH=${process.env.PATH}`], cwd: "/" },
  root: { path: "/", readonly: true },
  hostname: "bare",
  mounts: [{ destination: "/proc", type: "proc", source: "proc" }],
  linux: { namespaces: ["pid", "mount", "ipc", "uts", "network"].map((type) => ({ type })) },
});
