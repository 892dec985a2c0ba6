/**
 * Images made from files of this machine: nothing is pulled. An image is layers (folders or files of the machine) and
 * a configuration; `ctr` imports the archive that `docker save` would write.
 */
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { PATH } from "../parts/folder.ts";
import { NODES } from "./addresses.ts";
import { containerdSocket } from "./node.ts";

const run = promisify(execFile);

/** Arguments of `tar` that choose the files of a layer. */
export type Layer = readonly string[];

export interface ImageSpec {
  name: string;
  layers: readonly Layer[];
  config: { Entrypoint?: string[]; Cmd?: string[]; Env?: string[]; WorkingDir?: string };
}

/** To all nodes. */
export async function importImage(dir: string, { name, layers, config }: ImageSpec): Promise<void> {
  const work = mkdtempSync(join(dir, "image-"));
  try {
    const digests: string[] = [];
    for (const [index, layer] of layers.entries()) {
      const file = join(work, `${index}.tar`);
      execFileSync("tar", ["--create", "--file", file, "--numeric-owner", "--owner=0", "--group=0", ...layer]);
      digests.push(await digestOf(file));
    }
    const architecture = process.arch === "x64" ? "amd64" : process.arch;
    const description = { architecture, os: "linux", config, rootfs: { type: "layers", diff_ids: digests } };
    writeFileSync(join(work, "config.json"), JSON.stringify(description));
    const manifest = [{ Config: "config.json", RepoTags: [name], Layers: layers.map((_, index) => `${index}.tar`) }];
    writeFileSync(join(work, "manifest.json"), JSON.stringify(manifest));
    const archive = join(work, "image.tar");
    const files = ["manifest.json", "config.json", ...layers.map((_, index) => `${index}.tar`)];
    execFileSync("tar", ["--create", "--file", archive, "-C", work, ...files]);
    await Promise.all(
      NODES.map((node) => {
        const ctr = ["--address", containerdSocket(dir, node), "--namespace", "k8s.io"];
        return run("ctr", [...ctr, "images", "import", "--snapshotter", "overlayfs", archive], { env: { PATH } });
      }),
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The folder at another place of the image. Links keep what they lead to. */
export const moved = (folder: string, at: string, leftOut: readonly string[] = []): Layer => [
  ...["--anchored", ...leftOut.map((name) => `--exclude=./${name}`)],
  ...["--transform", `flags=rh;s,^\\.,.${at === "/" ? "" : at},`, "-C", folder, "."],
];

async function digestOf(file: string): Promise<string> {
  const digest = createHash("sha256");
  await pipeline(createReadStream(file), digest);
  return `sha256:${digest.digest("hex")}`;
}
