/** The programs that workloads are run with, and the Debian packages they come in. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

const PACKAGES: Readonly<Record<string, string>> = {
  nft: "nftables",
  ip: "iproute2",
  "mkfs.ext4": "e2fsprogs",
  mount: "mount",
  nsenter: "util-linux",
};

/** Where the server looks too: the PATH of a user often lacks the folders of the administrator's programs. */
const FOLDERS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/** Packages whose programs are not on this machine. */
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
