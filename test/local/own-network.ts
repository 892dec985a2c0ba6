/**
 * Runs a program on a machine of its own, as far as the network goes: a network namespace in which this machine's own
 * network is left alone. A machine without nft gets Debian's, unpacked and not installed, in a mount namespace where
 * /usr/local/sbin is the folder that holds it: the driver looks for its tools in the folders of the system only.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianEnv, unpackedDebian } from "../debian-packages.ts";
import { addressesMissing } from "./machine.ts";

const PACKAGES = [
  ...["nftables", "libnftables1", "libnftnl11", "libmnl0", "libxtables12", "libjansson4"],
  ...["libedit2", "libbsd0", "libmd0"],
];
const COVERED = "/usr/local/sbin";
const SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";

interface OwnNetwork {
  /** Arguments of `unshare` before the program and its arguments. */
  args: string[];
}

/** A text says why the machine has none, and how it gets one. */
export function ownNetwork(): OwnNetwork | string {
  if (addressesMissing) return addressesMissing;
  if (!runs("ip", ["-V"])) return "needs ip: install iproute2 to include it";
  if (runs("nft", ["--version"])) return { args: ["-n"] };
  const folder = unpackedTools();
  if (folder === null) return "needs nft: install nftables, or let apt-get download Debian's, to include it";
  return { args: ["-n", "-m", "sh", "-c", `mount --bind "$0" ${COVERED} && exec "$@"`, folder] };
}

const runs = (program: string, args: string[]): boolean =>
  spawnSync(program, args, { env: { PATH: SYSTEM_PATH }, stdio: "ignore" }).status === 0;

/** A folder with programs that bring their libraries along; null where Debian's archive cannot be reached. */
function unpackedTools(): string | null {
  const root = unpackedDebian("nftables", PACKAGES);
  if (root === null) return null;
  const folder = join(root, "tools");
  if (existsSync(folder)) return folder;
  const { LD_LIBRARY_PATH = "" } = debianEnv(root);
  const made = `${folder}.${process.pid}`;
  mkdirSync(made);
  const lines = ["#!/bin/sh", `LD_LIBRARY_PATH='${LD_LIBRARY_PATH}' exec '${join(root, "usr/sbin/nft")}' "$@"`, ""];
  writeFileSync(join(made, "nft"), lines.join("\n"), { mode: 0o755 });
  execFileSync(join(made, "nft"), ["--version"], { stdio: "ignore" });
  if (!existsSync(folder)) renameSync(made, folder); // another test file may have been first
  return folder;
}
