/** The operator's own table of names, which wins over DNS. */
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

const HOSTS_FILE = "/etc/hosts";

/** The addresses of a name in the hosts file; none when the file does not list the name or cannot be read. */
export async function hostsFileAddresses(name: string): Promise<string[]> {
  return addressesIn(await readFile(HOSTS_FILE, "utf8").catch(() => ""), name);
}

export function addressesIn(text: string, name: string): string[] {
  const wanted = name.toLowerCase();
  return text.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/);
    return isIP(address) && names.includes(wanted) ? [address] : [];
  });
}
