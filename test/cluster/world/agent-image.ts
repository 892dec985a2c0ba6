/** An image whose program answers as an agent. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { says } from "../../deploy-suite.ts";
import { smallBase } from "../../docker/small-base.ts";
import { importImage, moved } from "./images.ts";

export const AGENT_IMAGE = "localhost/berth-agent:1";

export async function importAgentImage(dir: string): Promise<void> {
  const work = mkdtempSync(join(dir, "agent-image-"));
  try {
    mkdirSync(join(work, "srv"));
    writeFileSync(join(work, "srv/index.js"), says("hello")["index.js"] ?? "");
    const base = smallBase({ dir: work, nodeBinary: realpathSync(process.execPath) });
    await importImage(dir, {
      name: AGENT_IMAGE,
      layers: [
        ...base.parts.flatMap(({ at, lowers }) => lowers.map((lower) => moved(lower, at))),
        moved(join(work, "srv"), "/srv"),
      ],
      config: { Entrypoint: ["node", "/srv/index.js"], Env: [`PATH=${base.env.PATH}`], WorkingDir: "/srv" },
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
