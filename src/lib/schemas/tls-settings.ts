/** Settings of HTTPS: where certificates come from, and what becomes of plain HTTP. */
import { z } from "zod";
import { numberOfProxies, type Proxies, proxiesAt } from "../network/proxies.ts";
import { flag, list, proxies } from "./setting-values.ts";

/** Says which entry is no address and no range of addresses. */
function rangesOnly(ranges: readonly string[], context: z.core.$RefinementCtx): void {
  try {
    proxiesAt(ranges);
  } catch (error) {
    context.addIssue({ code: "custom", message: (error as Error).message });
  }
}

export const tlsSettings = {
  tls_cert: {
    env: "BERTH_TLS_CERT",
    schema: z.string().optional(),
    about: "Certificate file (PEM); reloaded when it changes.",
  },
  tls_key: { env: "BERTH_TLS_KEY", schema: z.string().optional(), about: "Key file (PEM)." },
  tls: {
    env: "BERTH_TLS",
    schema: z.enum(["off", "auto"]).default("off"),
    about:
      "auto = HTTPS with a certificate authority of this server's own, which `berth trust` makes known to clients.",
  },
  http_port: {
    env: "BERTH_HTTP_PORT",
    schema: z.coerce.number().int().min(0).max(65535).optional(),
    about: "With TLS: another port, such as 80, whose plain HTTP is redirected to HTTPS.",
  },
  acme_directory: {
    env: "BERTH_ACME_DIRECTORY",
    schema: z.url({ protocol: /^https$/ }).optional(),
    about:
      "Certificate authority (ACME) for custom domains and the platform's own names, such as https://acme-v02.api.letsencrypt.org/directory; setting it accepts its terms.",
  },
  acme_email: {
    env: "BERTH_ACME_EMAIL",
    schema: z.email().optional(),
    about: "Whom the certificate authority tells about trouble.",
  },
  acme_challenge: {
    env: "BERTH_ACME_CHALLENGE",
    schema: z.enum(["http-01", "tls-alpn-01", "dns-01"]).default("http-01"),
    about:
      "How names are proved: http-01 (needs http_port, reached as port 80), tls-alpn-01 (the port reached as 443) or dns-01 (needs acme_hook; wildcards).",
  },
  acme_hook: {
    env: "BERTH_ACME_HOOK",
    schema: z.string().min(1).optional(),
    about: "For dns-01: program that is run with set or unset, the name of a TXT record and its value.",
  },
  acme_ca: {
    env: "BERTH_ACME_CA",
    schema: z.string().min(1).optional(),
    about: "File (PEM) with the authority that vouches for acme_directory itself, where no public one does.",
  },
  trust_proxy: {
    env: "BERTH_TRUST_PROXY",
    schema: proxies.default(0),
    about:
      "A proxy in front terminates TLS and sets X-Forwarded-*: true, or the number of proxies that each add their client to X-Forwarded-For.",
  },
  trusted_proxies: {
    env: "BERTH_TRUSTED_PROXIES",
    schema: list.superRefine(rangesOnly).default([]),
    about:
      "Addresses or ranges of the proxies in front, such as 10.0.0.5,192.168.7.0/24: only their X-Forwarded-* are believed. Takes the place of trust_proxy.",
  },
  proxy_protocol: {
    env: "BERTH_PROXY_PROTOCOL",
    schema: flag.default(false),
    about:
      "Connections from trusted_proxies begin with a header of the PROXY protocol (version 1 or 2), which names the client.",
  },
  insecure_http: {
    env: "BERTH_INSECURE_HTTP",
    schema: flag.default(false),
    about: "Allow plain HTTP on an address that is not loopback.",
  },
} as const;

type TlsConfig = { [Name in keyof typeof tlsSettings]: z.output<(typeof tlsSettings)[Name]["schema"]> };

/** Whether the server itself speaks TLS. */
export const isTls = ({ tls, tls_cert }: Pick<TlsConfig, "tls" | "tls_cert">): boolean =>
  tls === "auto" || tls_cert !== undefined;

type ProxyConfig = Pick<TlsConfig, "trusted_proxies" | "trust_proxy">;

export const hasProxies = ({ trusted_proxies, trust_proxy }: ProxyConfig): boolean =>
  trusted_proxies.length > 0 || trust_proxy > 0;

export const proxiesOf = ({ trusted_proxies, trust_proxy }: ProxyConfig): Proxies =>
  trusted_proxies.length > 0 ? proxiesAt(trusted_proxies) : numberOfProxies(trust_proxy);

/** Why these settings do not go together; null when they do. */
export function tlsProblem(config: TlsConfig): string | null {
  const { tls, tls_cert, tls_key, http_port, acme_directory, acme_challenge, acme_hook } = config;
  const { trusted_proxies, trust_proxy, proxy_protocol } = config;
  if ((tls_cert === undefined) !== (tls_key === undefined))
    return "tls_cert and tls_key go together: set both or neither.";
  if (tls === "auto" && tls_cert !== undefined)
    return "tls = auto makes certificates of its own: leave tls_cert and tls_key out, or tls.";
  if (http_port !== undefined && !isTls(config))
    return "http_port redirects to HTTPS, which this server does not speak: set tls = auto, or tls_cert and tls_key.";
  if (trusted_proxies.length > 0 && trust_proxy > 0)
    return "trusted_proxies says where the proxies are: leave trust_proxy out.";
  if (proxy_protocol && trusted_proxies.length === 0)
    return "proxy_protocol needs trusted_proxies: anybody else could write any address into the header.";
  if (acme_directory === undefined) return null;
  if (!isTls(config)) return "acme_directory is for HTTPS: set tls = auto, or tls_cert and tls_key.";
  if (acme_challenge === "http-01" && http_port === undefined)
    return "acme_challenge http-01 needs http_port: the authority asks on port 80.";
  if (acme_challenge === "dns-01" && acme_hook === undefined)
    return "acme_challenge dns-01 needs acme_hook: a program that writes DNS records.";
  return null;
}
