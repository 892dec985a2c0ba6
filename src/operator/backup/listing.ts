/** `berth backup list`. */
import { readSecretKeys, secretKeyPlace } from "../../auth/secret-key.ts";
import type { Config } from "../../config.ts";
import { backupIds, placeOf, readManifest, repositoryToRead } from "./catalogue.ts";

/** Returns the lines to show to the operator, newest first. */
export async function backupLines(config: Config, target: string | undefined): Promise<string[]> {
  const repository = await repositoryToRead(placeOf(config, target), readSecretKeys(config), secretKeyPlace(config));
  const lines = ["ID                       VERSION    NODES"];
  for (const id of (await backupIds(repository)).reverse()) {
    const { version, nodes } = await readManifest(repository, id);
    lines.push(`${id.padEnd(24)} ${version.padEnd(10)} ${nodes.map(({ name }) => name).join(", ")}`);
  }
  return lines;
}
