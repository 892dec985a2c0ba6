/** `berth backup list`. */
import { readSecretKeys, secretKeyPlace } from "../../auth/secret-key.ts";
import type { Config } from "../../config.ts";
import { bytesText } from "../../lib/bytes-text.ts";
import { backupIds, placeOf, readManifest, repositoryToRead } from "./catalogue.ts";

/** Returns the lines to show to the operator, newest first. */
export async function backupLines(config: Config, target: string | undefined): Promise<string[]> {
  const repository = await repositoryToRead(placeOf(config, target), readSecretKeys(config), secretKeyPlace(config));
  const lines = [row("ID", "DATE", "SIZE", "VERSION", "NODES")];
  for (const id of (await backupIds(repository)).reverse()) {
    const { createdAt, bytes, version, nodes } = await readManifest(repository, id);
    const date = `${createdAt.slice(0, 16).replace("T", " ")} UTC`;
    const size = bytes === undefined ? "-" : bytesText(bytes);
    lines.push(row(id, date, size, version, nodes.map(({ name }) => name).join(", ")));
  }
  return lines;
}

const row = (id: string, date: string, size: string, version: string, nodes: string): string =>
  `${id.padEnd(24)} ${date.padEnd(20)} ${size.padEnd(10)} ${version.padEnd(10)} ${nodes}`;
