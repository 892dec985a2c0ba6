/** The programs that running workloads needs, and their Debian packages. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

const PACKAGES: Readonly<Record<string, string>> = {
  nft: "nftables",
  ip: "iproute2",
  "mkfs.ext4": "e2fsprogs",
  mount: "mount",
  nsenter: "util-linux",
};

/** The folders that the server searches too: a user's PATH often lacks the sbin folders. */
const FOLDERS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/** Packages whose programs are missing on this machine. */
export const missingPackages = (folders: readonly string[] = FOLDERS): string[] =>
  Object.entries(PACKAGES).flatMap(([program, name]) =>
    folders.some((folder) => isProgram(join(folder, program))) ? [] : [name],
  );

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
