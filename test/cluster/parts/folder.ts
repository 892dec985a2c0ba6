/** The folder that keeps the parts of a cluster between runs. It lies outside the repository: together they are 1 GB. */
import { homedir } from "node:os";
import { join } from "node:path";

export const CACHE = process.env.BERTH_CLUSTER_CACHE ?? join(homedir(), ".cache/berth-cluster");

/** Programs built with Go. */
export const BIN = join(CACHE, "bin");
/** Debian packages, unpacked and not installed. */
export const DEBIAN = join(CACHE, "debian");
/** Plugins that give a pod its network. */
export const CNI_BIN = join(DEBIAN, "usr/lib/cni");

/** Libraries of those packages; the machine's own come first for everything else. */
export const LIBRARIES = join(DEBIAN, "usr/lib", process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu");

export const PATH = [
  BIN,
  ...["usr/bin", "usr/sbin"].map((dir) => join(DEBIAN, dir)),
  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
].join(":");
