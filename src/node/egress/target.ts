import { type Host, parseHost } from "../../lib/network/egress/host.ts";

/** Where a workload wants to connect. */
export interface Target {
  host: Host;
  port: number;
}

/** `host:port`, as in CONNECT; null for other texts. */
export function parseAuthority(text: string): Target | null {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]/@]+):(\d{1,5})$/i.exec(text);
  return match ? target(match[1] ?? "", Number(match[2])) : null;
}

/** The address of a plain request, `http://host/path`; null for other texts. */
export function parseHttpUrl(text: string): Target | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url?.protocol === "http:" ? target(url.hostname, Number(url.port || 80)) : null;
}

/** The host of a `Host` header, without its port; null when the header is no host. */
export function parseHostHeader(text: string): Host | null {
  return parseHost(text.replace(/:\d{1,5}$/, ""));
}

/** As in a URL: the port is left out when the scheme implies it. */
export function authorityOf({ host, port }: Target, secure: boolean): string {
  const name = host.text.includes(":") ? `[${host.text}]` : host.text;
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`;
}

function target(text: string, port: number): Target | null {
  const host = port > 0 && port < 65_536 ? parseHost(text) : null;
  return host && { host, port };
}
