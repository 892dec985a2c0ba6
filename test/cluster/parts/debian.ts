/** etcd, containerd, runc and the network plugins: Debian packages, unpacked into the cache and never installed. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CNI_BIN, DEBIAN } from "./folder.ts";

const PACKAGES = ["etcd-server", "containerd", "runc", "containernetworking-plugins"];

export function provideDebianPackages(): void {
  if (existsSync(join(CNI_BIN, "bridge"))) return;
  console.error(`Unpacking ${PACKAGES.join(", ")} (apt-get download)…`);
  const debs = mkdtempSync(join(tmpdir(), "berth-cluster-debs-"));
  try {
    execFileSync("apt-get", ["download", "-q", ...PACKAGES], { cwd: debs, stdio: "ignore" });
    mkdirSync(DEBIAN, { recursive: true });
    for (const deb of readdirSync(debs)) execFileSync("dpkg", ["-x", join(debs, deb), DEBIAN]);
  } finally {
    rmSync(debs, { recursive: true, force: true });
  }
}
