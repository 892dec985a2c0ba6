/** Who a node is: a file in its data folder, written once. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { randomWord } from "../lib/ids.ts";
import { UsageError } from "../lib/usage-error.ts";

export const NODE_FILE = "node.json";
/** What a server leaves in a folder. A folder that has one of these and no NODE_FILE is from an older version. */
const LEFT_BEHIND = ["berth.sqlite", "runtime", "logs", "blobs"];

const identity = z.object({ id: z.string().min(1).max(200), name: z.string().min(1).max(200) });

export type NodeIdentity = z.output<typeof identity>;

export interface IdentityOptions {
  dataDir: string;
  /** The name that the operator chose; undefined = the name in the file, or the machine's. */
  name: string | undefined;
  machineName: string;
  /** The id that older versions used for this machine and folder; meters and leases in the database have it. */
  olderId: string;
}

/** The caller holds the lock of the folder, so that no other process writes the file at the same time. */
export function identityOf({ dataDir, name, machineName, olderId }: IdentityOptions): NodeIdentity {
  const file = join(dataDir, NODE_FILE);
  if (existsSync(file)) {
    const written = read(file);
    return { ...written, name: name ?? written.name };
  }
  const isOlder = LEFT_BEHIND.some((entry) => existsSync(join(dataDir, entry)));
  const made = { id: isOlder ? olderId : `node-${randomWord(12)}`, name: name ?? machineName };
  write(dataDir, file, made);
  return made;
}

function read(file: string): NodeIdentity {
  try {
    return identity.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    throw new UsageError(
      `${file} cannot be read as the identity of this node.`,
      'restore the file, or write {"id": "…", "name": "…"} with the id that `berth nodes list` shows',
    );
  }
}

/** Durable before it is used: a second identity after a crash would not own the workloads of the first. */
function write(dataDir: string, file: string, made: NodeIdentity): void {
  const temporary = `${file}.new`;
  const descriptor = openSync(temporary, "w", 0o600);
  writeSync(descriptor, `${JSON.stringify(made, null, 2)}\n`);
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(temporary, file);
  const folder = openSync(dataDir, "r");
  fsyncSync(folder);
  closeSync(folder);
}
