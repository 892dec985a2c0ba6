/**
 * Programs that read no variable for their authorities (wget and whatever else uses GnuTLS) read the store of the
 * system. At each start PID 1 puts the authority of the workspace at the end of that store, and takes one away that no
 * longer holds. An image without a store has no such programs that work, and gets none.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TRUST_DIR, TRUST_FILES } from "../../contract/sandbox-wire.ts";

/** Debian and Alpine; Fedora and its relatives. */
const STORES = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
const BEGIN = "# authority of the workspace: begin\n";
const END = "# authority of the workspace: end\n";

export function trustInSystem(folder = TRUST_DIR, stores: readonly string[] = STORES): void {
  const file = join(folder, TRUST_FILES.authority);
  for (const store of stores)
    try {
      const authority = existsSync(file) ? readFileSync(file, "utf8") : "";
      if (!existsSync(store) || (authority === "" && !endsWithBlock(store))) continue;
      const text = readFileSync(store, "utf8");
      const begin = text.indexOf(BEGIN);
      const own = begin === -1 ? text : text.slice(0, begin);
      const wanted = authority === "" ? own : `${own}${BEGIN}${authority.trim()}\n${END}`;
      if (wanted !== text) writeFileSync(store, wanted);
    } catch {
      // A store that cannot be written is left alone: programs that read variables trust the authority all the same.
    }
}

/** Reads a few bytes: most workloads have no routes, and a store is as large as a small program. */
function endsWithBlock(store: string): boolean {
  const fd = openSync(store, "r");
  try {
    const tail = Buffer.alloc(END.length);
    readSync(fd, tail, 0, tail.length, Math.max(0, fstatSync(fd).size - tail.length));
    return tail.toString("latin1") === END;
  } finally {
    closeSync(fd);
  }
}
