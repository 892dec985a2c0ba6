/** etcd, containerd, runc, network plugins and nft: Debian packages, unpacked into the cache and never installed. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEBIAN } from "./folder.ts";

const PACKAGES = [
  ...["etcd-server", "containerd", "runc", "containernetworking-plugins"],
  ...["nftables", "libnftables1", "libnftnl11", "libmnl0", "libxtables12", "libjansson4"],
];

export function provideDebianPackages(): void {
  if (existsSync(join(DEBIAN, "complete"))) return;
  console.error(`Unpacking ${PACKAGES.join(", ")} (apt-get download)…`);
  const debs = mkdtempSync(join(tmpdir(), "berth-cluster-debs-"));
  try {
    execFileSync("apt-get", ["download", "-q", ...PACKAGES], { cwd: debs, stdio: "ignore" });
    mkdirSync(DEBIAN, { recursive: true });
    for (const deb of readdirSync(debs)) execFileSync("dpkg", ["-x", join(debs, deb), DEBIAN]);
    writeFileSync(join(DEBIAN, "complete"), PACKAGES.join("\n"));
  } finally {
    rmSync(debs, { recursive: true, force: true });
  }
}
