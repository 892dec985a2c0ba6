/** Settings of HTTPS: where certificates come from, and what becomes of plain HTTP. */
import { z } from "zod";
import { flag, proxies } from "./setting-values.ts";

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
  trust_proxy: {
    env: "BERTH_TRUST_PROXY",
    schema: proxies.default(0),
    about:
      "A proxy in front terminates TLS and sets X-Forwarded-*: true, or the number of proxies that each add their client to X-Forwarded-For.",
  },
  insecure_http: {
    env: "BERTH_INSECURE_HTTP",
    schema: flag.default(false),
    about: "Allow plain HTTP on an address that is not loopback.",
  },
} as const;
