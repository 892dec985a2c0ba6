/**
 * A base image of a few programs. The driver's own is made of all programs of the machine, which are gigabytes where
 * browsers and compilers are installed.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { BaseImage } from "../../src/node/drivers/local/images/base-image.ts";

const PROGRAMS = [
  ...["bash", "cat", "chmod", "cut", "df", "env", "grep", "head", "hostname", "id", "kill", "ln", "ls", "mkdir"],
  ...["mv", "od", "ps", "pwd", "rm", "sed", "seq", "sh", "sleep", "sort", "stat", "tail", "tee", "test", "touch"],
  ...["tr", "true", "uname", "wc"],
];
const BIN = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

export interface SmallBaseOptions {
  /** Empty folder for the copies. */
  dir: string;
  nodeBinary?: string;
  /** Executables that are brought along, whose libraries have to be there. */
  guests?: readonly string[];
  /** Programs beside the usual ones. */
  programs?: readonly string[];
}

export function smallBase({ dir, nodeBinary, guests = [], programs = [] }: SmallBaseOptions): BaseImage {
  const root = join(dir, "root");
  const usr = join(dir, "usr");
  for (const name of ["etc", "tmp", "root", "berth", "var/log", "var/tmp"])
    mkdirSync(join(root, name), { recursive: true });
  for (const name of ["bin", "sbin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(root, name));
  for (const name of ["bin", "sbin", "lib", "lib64", "local/bin"]) mkdirSync(join(usr, name), { recursive: true });
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\n");
  for (const name of ["ssl/certs", "ld.so.cache"])
    if (existsSync(`/etc/${name}`)) cpSync(`/etc/${name}`, join(root, "etc", name), { recursive: true });
  const libraries = new Set<string>();
  for (const name of [...PROGRAMS, ...programs]) {
    const path = BIN.map((bin) => join(bin, name)).find((each) => existsSync(each));
    if (!path) continue;
    copyFileSync(realpathSync(path), join(usr, "bin", name));
    for (const library of librariesOf(path)) libraries.add(library);
  }
  if (nodeBinary) copyFileSync(nodeBinary, join(usr, "local/bin/node"));
  for (const guest of [...guests, ...(nodeBinary ? [nodeBinary] : [])])
    for (const library of librariesOf(guest)) libraries.add(library);
  for (const library of libraries) {
    const place = join(usr, library.replace(/^\/usr/, ""));
    mkdirSync(dirname(place), { recursive: true });
    copyFileSync(realpathSync(library), place);
  }
  const names = [...libraries].map((path) => basename(path));
  return {
    digest: `sha256:${createHash("sha256")
      .update([...PROGRAMS, ...programs, ...names, nodeBinary].join())
      .digest("hex")}`,
    parts: [
      { at: "/", lowers: [root] },
      { at: "/usr", lowers: [usr] },
    ],
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C.UTF-8" },
    workDir: "/berth",
    bytes: async () => 0,
  };
}

/** The loader, and the libraries that `ldd` finds. */
const librariesOf = (program: string): string[] =>
  spawnSync("ldd", [program], { encoding: "utf8" })
    .stdout.split("\n")
    .flatMap((line) => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
