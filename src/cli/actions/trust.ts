/** `berth trust`: this user's programs accept the authority of a server that signs its own certificates, or no longer. */
import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { connect, type DetailedPeerCertificate } from "node:tls";
import { promisify } from "node:util";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { dataFolder } from "../connection.ts";
import { dropAuthority, keepAuthority, localAuthority } from "../trusted-authorities.ts";

const CONNECT_MS = 15_000;

export async function trust({ args, options, context }: Invocation): Promise<number | undefined> {
  const given = text(args[0]) ?? "";
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url?.protocol !== "https:")
    throw new UsageError(`'${given}' is not an address of HTTPS.`, "write it as https://host:port");
  const dataDir = dataFolder(context.env);
  const home = context.env.HOME ?? "";
  if (options.remove === true) {
    const kept = dropAuthority(dataDir, url);
    context.print(`berth            ${kept ? "no longer trusts" : "did not trust"} ${url.host}`);
    for (const line of await browsersForget(home, url.host)) context.print(line);
    return undefined;
  }
  const authority = await authorityOf(url);
  const fingerprint = authority.fingerprint256;
  const expected = text(options.fingerprint);
  const local = localAuthority(dataDir);
  const isLocal = local !== null && new X509Certificate(local).fingerprint256 === fingerprint;
  if (expected === undefined && !isLocal)
    throw new UsageError(
      `${url.host} presents the authority ${fingerprint} (SHA-256). Compare it with the fingerprint that the server printed when it started.`,
      `when they are the same: berth trust ${url.origin} --fingerprint ${fingerprint}`,
    );
  if (expected !== undefined && plain(expected) !== plain(fingerprint))
    throw new UsageError(
      `${url.host} presents another authority: ${fingerprint} (SHA-256). Nothing was changed.`,
      "take the fingerprint from the server's own output; somebody may be between you and the server",
    );
  const file = keepAuthority(dataDir, url, authority.toString());
  context.print(`berth            trusts ${url.host} (${file})`);
  for (const line of await tellBrowsers(home, url.host, file)) context.print(line);
  context.print(`other programs   were not changed; give them the file: curl --cacert ${file}`);
  context.print(`                 NODE_EXTRA_CA_CERTS=${file}`);
  return undefined;
}

const plain = (fingerprint: string): string =>
  fingerprint
    .replace(/^SHA-?256[: ]?/i, "")
    .replace(/[^0-9a-f]/gi, "")
    .toUpperCase();

/** The authority at the end of the chain that the server presents. It has to have signed the server's certificate. */
function authorityOf(url: URL): Promise<X509Certificate> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    const socket = connect({
      ...{ host, port: Number(url.port || 443), rejectUnauthorized: false, timeout: CONNECT_MS },
      ...(isIP(host) === 0 ? { servername: host } : {}),
    });
    const refuse = (why: string): void => {
      socket.destroy();
      reject(new UsageError(`${url.host}: ${why}.`, "check the address, and that the server runs with BERTH_TLS=auto"));
    };
    socket.once("timeout", () => refuse("no answer"));
    socket.once("error", (error) => refuse(error.message));
    socket.once("secureConnect", () => {
      const presented = socket.getPeerCertificate(true);
      const leaf = new X509Certificate(presented.raw);
      const last = new X509Certificate(lastOf(presented).raw);
      socket.destroy();
      if (!last.ca || !leaf.verify(last.publicKey)) refuse("the server presents no authority of its own");
      else resolve(last);
    });
  });
}

function lastOf(certificate: DetailedPeerCertificate): DetailedPeerCertificate {
  const { issuerCertificate: above } = certificate;
  return above === undefined || above === certificate || above.fingerprint256 === certificate.fingerprint256
    ? certificate
    : lastOf(above);
}

/** Chromium and Firefox keep authorities in databases of their own, which `certutil` writes. */
async function tellBrowsers(home: string, host: string, file: string): Promise<string[]> {
  const folders = browserFolders(home);
  if (folders.length === 0) return [`browsers         none of this user was found; import ${file} where you use one`];
  const lines: string[] = [];
  for (const folder of folders)
    try {
      await certutil(folder, "-A", "-t", "C,,", "-n", nicknameOf(host), "-i", file);
      lines.push(`browser          trusts ${host} (${folder})`);
    } catch (error) {
      lines.push(`browser          was not changed: ${reasonOf(error)}; import ${file} (${folder})`);
    }
  return lines;
}

/** A browser that never trusted the host is not mentioned. */
async function browsersForget(home: string, host: string): Promise<string[]> {
  const lines: string[] = [];
  for (const folder of browserFolders(home))
    try {
      await certutil(folder, "-D", "-n", nicknameOf(host));
      lines.push(`browser          no longer trusts ${host} (${folder})`);
    } catch (error) {
      const why = reasonOf(error);
      if (!/could not find cert/i.test(why)) lines.push(`browser          was not changed: ${why} (${folder})`);
    }
  return lines;
}

const nicknameOf = (host: string): string => `Berth at ${host}`;

function browserFolders(home: string): string[] {
  const firefox = globSync(join(home, ".mozilla/firefox/*/cert9.db")).map((found) => join(found, ".."));
  return [join(home, ".pki/nssdb"), ...firefox].filter((folder) => existsSync(folder));
}

const certutil = (folder: string, ...words: string[]): Promise<unknown> =>
  promisify(execFile)("certutil", ["-d", `sql:${folder}`, ...words], { timeout: CONNECT_MS });

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? "certutil is not installed (Debian: libnss3-tools)" : message;
}
