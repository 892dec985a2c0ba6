/**
 * Authorities of servers that sign their own certificates and that this user trusts (`berth trust`), and that of the
 * server on this machine. They count for commands of this user beside the system's.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AUTHORITY_FILE } from "../lib/x509/own-authority.ts";

const folderOf = (dataDir: string): string => join(dataDir, "trust");

const fileOf = (dataDir: string, { host }: URL): string =>
  join(folderOf(dataDir), `${host.replace(/[^\w.-]/g, "_")}.pem`);

/** Keeps the authority of a server; returns the file. */
export function keepAuthority(dataDir: string, url: URL, pem: string): string {
  mkdirSync(folderOf(dataDir), { recursive: true, mode: 0o700 });
  const file = fileOf(dataDir, url);
  writeFileSync(file, pem, { mode: 0o600 });
  return file;
}

/** Forgets the authority of a server; false when it was not kept. */
export function dropAuthority(dataDir: string, url: URL): boolean {
  const file = fileOf(dataDir, url);
  if (!existsSync(file)) return false;
  rmSync(file);
  return true;
}

/** The authority of the server on this machine; null where it has none. */
export const localAuthority = (dataDir: string): string | null => read(join(dataDir, AUTHORITY_FILE));

/** From now on connections of this process accept certificates of these authorities, too. */
export function useTrustedAuthorities(dataDir: string): void {
  const folder = folderOf(dataDir);
  const kept = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".pem")) : [];
  const found = [localAuthority(dataDir), ...kept.map((name) => read(join(folder, name)))].filter(
    (pem) => pem !== null,
  );
  if (found.length === 0) return;
  const tls = process.getBuiltinModule("node:tls");
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), ...found]);
}

/** A file that cannot be read is not trusted; the connection then says which certificate was refused. */
function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
