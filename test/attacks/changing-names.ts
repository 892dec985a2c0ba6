/**
 * Name servers that change their answer with every question, for a child in network and mount namespaces of its own
 * (`unshare -n -m`): the first answer is a public address that nobody has, the second one is an address of the machine.
 */
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answerQuestion } from "../dns-server.ts";

/** The kernel refuses a connection to this address at once, so that nobody waits for it. */
export const NOBODYS = "203.0.113.200";

export interface ChangingNames extends Disposable {
  /** Questions for the IPv4 address of a name so far. */
  asked: ReadonlyMap<string, number>;
}

export const ip = (...args: string[]): Buffer => execFileSync("ip", args);

/** `inside` tells the addresses of every second answer. `before` may hold an answer back. */
export async function startChangingNames(
  inside: (name: string) => string[],
  before: (query: Buffer) => Promise<void> | void = () => {},
): Promise<ChangingNames> {
  const asked = new Map<string, number>();
  const names = createSocket("udp4");
  names.on("message", async (query, from) => {
    await before(query);
    const answer = answerQuestion(query, (name, type) => {
      if (type !== "A") return [];
      const count = asked.get(name) ?? 0;
      asked.set(name, count + 1);
      return count % 2 === 0 ? [NOBODYS] : inside(name);
    });
    names.send(answer, from.port, from.address);
  });
  names.bind(53, "127.0.0.1");
  await once(names, "listening");
  const folder = mkdtempSync(join(tmpdir(), "berth-names-"));
  writeFileSync(join(folder, "resolv.conf"), "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
  writeFileSync(join(folder, "nsswitch.conf"), "hosts: dns\n");
  for (const file of ["resolv.conf", "nsswitch.conf"].filter((name) => existsSync(join("/etc", name))))
    execFileSync("mount", ["--bind", join(folder, file), join("/etc", file)]);
  ip("route", "add", "unreachable", `${NOBODYS}/32`);
  return {
    asked,
    [Symbol.dispose]() {
      names.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
