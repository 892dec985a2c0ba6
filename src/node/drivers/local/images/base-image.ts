/**
 * The image that needs no download: the machine's own programs, read-only, with private /etc, /home, /var and /root.
 * It is two overlays: `/` over a small folder made here, and `/usr` over the machine's /usr. Nothing else of the
 * machine is in it.
 */
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { putProgram } from "../../../../lib/disk/put-program.ts";
import { readMountTable } from "../machine/mount-table.ts";
import { folderBytes } from "../storage/volumes.ts";
import type { RootPart } from "../workload/launch-program.ts";
import { splitPart } from "./machine-parts.ts";

export interface BaseImage {
  digest: string;
  parts: RootPart[];
  env: Record<string, string>;
  workDir: string;
  /** Size of the image, files of the machine included. Counted once, because there are many files. */
  bytes(): Promise<number>;
}

export interface BaseImageOptions {
  /** Folder of all base images; one subfolder per digest. */
  dir: string;
  brand: string;
  /** Put at /usr/local/bin/node. */
  nodeBinary?: string;
  /** The parts are copied, not mounted, so no part has to be taken apart. */
  copied?: boolean;
}

/** Raised when the layout below changes, so that an old folder is not taken for the new one. */
const LAYOUT = 2;

/** Top-level folders of programs: links on a merged-/usr system, folders of their own elsewhere. */
export const PROGRAM_DIRS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** Files that programs need from the machine's /etc. None of them holds a secret. */
const ETC_COPIED = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "ca-certificates.conf",
  "debian_version",
  "fonts",
  "gai.conf",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "mime.types",
  "mke2fs.conf",
  "nsswitch.conf",
  "pki/ca-trust",
  "pki/tls/certs",
  "profile",
  "profile.d",
  "protocols",
  "python3",
  "python3.11",
  "python3.12",
  "python3.13",
  "services",
  "shells",
  "skel",
  "ssl/certs",
  "ssl/openssl.cnf",
  "timezone",
];

const FOLDERS = [
  "usr",
  "etc",
  "home/user",
  "mnt",
  "opt",
  "srv",
  "var/cache",
  "var/lib",
  "var/log",
  "var/mail",
  "var/spool",
];

const PASSWD = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
user:x:1000:1000:user:/home/user:/bin/bash
`;
const GROUP = `root:x:0:
daemon:x:1:
bin:x:2:
tty:x:5:
mail:x:8:
shadow:x:42:
www-data:x:33:
staff:x:50:
user:x:1000:
nogroup:x:65534:
`;
const USER_ID = 1000;
/**
 * PAM rules for `su` and the like: everything is permitted. Only root can use these programs, and root needs no proof.
 */
const PAM = ["auth", "account", "password", "session"].map((type) => `${type} required pam_permit.so\n`).join("");

/** Name of the folder of a base image. */
export const baseFolder = (digest: string): string => digest.replace("sha256:", "").slice(0, 16);

export function openBaseImage(options: BaseImageOptions): BaseImage {
  const digest = digestOf(options);
  const dir = join(options.dir, baseFolder(digest));
  if (!existsSync(dir)) build(dir, options);
  const own = PROGRAM_DIRS.filter((name) => isFolder(`/${name}`)).map((name) => ({
    at: `/${name}`,
    lowers: [`/${name}`],
  }));
  const programs: RootPart[] = [{ at: "/usr", lowers: [join(dir, "usr"), "/usr"] }, ...own];
  const parts = [
    { at: "/", lowers: [join(dir, "root")] },
    ...(isRoot() || options.copied ? programs : withoutMounts(programs, dir)),
  ];
  return {
    digest,
    parts,
    bytes: once(() => countBytes(join(dir, "bytes"), parts)),
    env: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/root",
      LANG: "C.UTF-8",
    },
    workDir: `/${options.brand}`,
  };
}

/** Splits parts with mounts below them; see `splitPart`. Only a server without root needs this. */
function withoutMounts(parts: RootPart[], dir: string): RootPart[] {
  if (process.platform !== "linux") return parts;
  const mountPoints = readMountTable("self").map(({ at }) => at);
  const key = createHash("sha256").update(mountPoints.join("\n")).digest("hex").slice(0, 16);
  return parts.flatMap((part) => splitPart(part, { mountPoints, dir: join(dir, `split-${key}`) }));
}

/** Counts once for all callers; after a failure the next call tries again. */
function once(count: () => Promise<number>): () => Promise<number> {
  let counting: Promise<number> | null = null;
  return () => {
    counting ??= count().catch((error: unknown) => {
      counting = null;
      throw error;
    });
    return counting;
  };
}

async function countBytes(file: string, parts: readonly RootPart[]): Promise<number> {
  if (existsSync(file)) return Number(readFileSync(file, "utf8"));
  let bytes = 0;
  for (const folder of parts.flatMap(({ lowers }) => lowers)) bytes += await folderBytes(folder);
  writeFileSync(`${file}.new`, String(bytes));
  renameSync(`${file}.new`, file);
  return bytes;
}

/** Digest over the machine's release and the additions made here. */
function digestOf({ brand, nodeBinary }: BaseImageOptions): string {
  const hash = createHash("sha256").update(`${LAYOUT} ${brand} ${process.arch}\n`);
  for (const file of ["/etc/os-release", "/etc/ld.so.cache"]) if (existsSync(file)) hash.update(readFileSync(file));
  if (nodeBinary) hash.update(`${nodeBinary} ${statSync(nodeBinary).size} ${statSync(nodeBinary).mtimeMs}`);
  return `sha256:${hash.digest("hex")}`;
}

function build(dir: string, { brand, nodeBinary }: BaseImageOptions): void {
  const temp = `${dir}.${process.pid}`;
  rmSync(temp, { recursive: true, force: true });
  const root = join(temp, "root");
  for (const name of FOLDERS) makeFolder(root, name);
  // Work dirs of commands, writable for every user. Owned by root, because git checks the owner.
  for (const name of [brand, "service"]) makeFolder(root, name, 0o1777);
  makeFolder(root, "var/tmp", 0o1777);
  makeFolder(root, "root", 0o700);
  symlinkSync("/run", join(root, "var/run"));
  for (const name of PROGRAM_DIRS) {
    if (isLink(`/${name}`)) symlinkSync(readlinkSync(`/${name}`), join(root, name));
    else if (isFolder(`/${name}`)) makeFolder(root, name);
  }
  for (const name of ETC_COPIED) copyIfThere(`/etc/${name}`, join(root, "etc", name));
  if (existsSync("/usr/lib/os-release")) symlinkSync("../usr/lib/os-release", join(root, "etc/os-release"));
  writeText(join(root, "etc/passwd"), PASSWD);
  writeText(join(root, "etc/group"), GROUP);
  makeFolder(root, "etc/pam.d");
  writeText(join(root, "etc/pam.d/other"), PAM);
  if (isRoot()) chownSync(join(root, "home/user"), USER_ID, USER_ID);
  for (const name of ["bashrc", "profile"]) copyIfThere(`/etc/skel/.${name}`, join(root, `root/.${name}`));
  makeFolder(temp, "usr/local/bin");
  if (nodeBinary) putProgram(nodeBinary, join(temp, "usr/local/bin/node"));
  renameSync(temp, dir);
}

/** Sets the mode explicitly, independent of the server's umask. */
function writeText(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}

/** Copies a file or folder if it exists, without the files that a server without root may not read. */
function copyIfThere(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(join(to, ".."), { recursive: true });
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, filter: isReadable });
}

function isReadable(path: string): boolean {
  try {
    if (!isLink(path)) accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Makes a folder and its parents. Modes are set explicitly, independent of the server's umask. */
export function makeFolder(root: string, name: string, mode = 0o755): void {
  const parts = name.split("/");
  parts.forEach((_, index) => {
    const path = join(root, ...parts.slice(0, index + 1));
    if (existsSync(path)) return;
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755);
  });
  chmodSync(join(root, name), mode);
}

const isRoot = (): boolean => process.getuid?.() === 0;
const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * The topmost layer of every image: mount points that are certainly folders, whatever the image has at that path, and
 * the files that configure the network.
 */
export function openSkeleton(dir: string, resolvConf: string): string {
  for (const name of ["proc", "sys", "dev", "run/berth", "etc"]) makeFolder(dir, name);
  makeFolder(dir, "tmp", 0o1777);
  writeFileSync(join(dir, "etc/hosts"), "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
  writeFileSync(join(dir, "etc/resolv.conf"), resolvConf);
  return dir;
}
