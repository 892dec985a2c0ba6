/** The image of deploy/Dockerfile, made from this working tree, the machine's own programs and the running Node. */
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../../src/lib/root.ts";
import { smallBase } from "../../docker/small-base.ts";
import { sandboxdBinary } from "../../sandboxd-binary.ts";
import { importImage, moved } from "./images.ts";

export const BERTH_IMAGE = { repository: "localhost/berth", tag: "test" };
export const BERTH_IMAGE_NAME = `${BERTH_IMAGE.repository}:${BERTH_IMAGE.tag}`;

/** As in .dockerignore, and packages that only the work on Berth needs. */
const LEFT_OUT = [
  ...[".git", "test", "bench", "docs", "versions", "dist", "sdk"],
  ...["@oven", "@biomejs", "@typescript", "@octokit", "playwright-core", "openai", ".cache"].map(
    (name) => `node_modules/${name}`,
  ),
];

export async function importBerthImage(dir: string): Promise<void> {
  const work = mkdtempSync(join(dir, "berth-image-"));
  try {
    const sandboxd = await sandboxdBinary();
    const own = join(work, "own");
    mkdirSync(join(own, "usr/local/bin"), { recursive: true });
    mkdirSync(join(own, "opt/berth"), { recursive: true });
    symlinkSync("/opt/berth/bin/berth.js", join(own, "usr/local/bin/berth"));
    copyFileSync(sandboxd, join(own, "opt/berth/sandboxd"));
    const base = smallBase({ dir: work, guests: [sandboxd], nodeBinary: realpathSync(process.execPath) });
    await importImage(dir, {
      name: BERTH_IMAGE_NAME,
      layers: [
        ...base.parts.flatMap(({ at, lowers }) => lowers.map((lower) => moved(lower, at))),
        moved(ROOT, "/opt/berth", LEFT_OUT),
        moved(own, "/"),
      ],
      config: {
        Entrypoint: ["berth"],
        Cmd: ["up"],
        Env: [`PATH=${base.env.PATH}`, "LANG=C.UTF-8", "BERTH_DATA=/var/lib/berth", "HOST=0.0.0.0", "PORT=8080"],
        WorkingDir: "/berth",
      },
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
