/** The platform's own host names, from the settings that operations have. */
import { consoleHost } from "../contract/console.ts";
import { isPlatformHost } from "../lib/network/platform-hosts.ts";
import type { Settings } from "./port.ts";

export type HostSettings = Pick<Settings, "domain" | "publicUrl" | "consoleUrl">;

export function belongsToPlatform(host: string, { domain: below, publicUrl, consoleUrl }: HostSettings): boolean {
  const domain = below ?? undefined;
  if (!URL.canParse(publicUrl)) return isPlatformHost(host, { domain });
  const publicHost = new URL(publicUrl).hostname;
  return isPlatformHost(host, {
    ...{ domain, publicHost },
    consoleHost: consoleHost({ publicUrl, domain, consoleUrl: consoleUrl ?? undefined }),
  });
}
