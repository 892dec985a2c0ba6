/** `spec.network` of a workload: which destinations it reaches, and what the platform adds to its requests. */
import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { BANDWIDTH_MIN_MBPS } from "../../lib/network/egress/bandwidth.ts";

/** Patterns in one list of domains; a look-up takes as long as with ten. */
const DOMAINS_MAX = 10_000;
/** Routes or rules; each one is tried in turn. */
const RULES_MAX = 1000;
const METHODS_MAX = 32;
/** A terabit per second: more is a mistake. */
const BANDWIDTH_MAX_MBPS = 1_000_000;

const domains = z.array(z.string().min(1).max(512)).max(DOMAINS_MAX);
const texts = z.record(z.string().max(256), z.string().max(64 * 1024));

const route = z.looseObject({
  destinations: domains.optional().describe("host, *.parent or *; also GET:POST:host/path* and !DELETE:host."),
  headers: texts
    .optional()
    .describe(
      "Set unless the request has them. {{SECRET:name}}, {{IDENTITY:audience}} and {{FUNC:name}} are filled in.",
    ),
  body: z.record(z.string(), z.unknown()).optional().describe("Members added to JSON bodies up to 1 MB."),
  secrets: texts.optional().describe("Write-only: masked in every answer."),
  redact: z.boolean().optional().describe("Replace the secrets and tokens of this route in answers; default false."),
});

const rule = z.looseObject({
  action: z.enum(["allow", "deny"]),
  domains: domains.optional(),
  cidr: z.string().max(64).optional().describe("Addresses, such as 203.0.113.0/24."),
  port: z
    .union([z.int(), z.string().max(16)])
    .optional()
    .describe("A port, or a range such as 8000-8999."),
  protocol: z.enum(["tcp", "udp", "http"]).optional(),
  methods: z.array(z.string().max(32)).max(METHODS_MAX).optional(),
  path: z.string().max(2048).optional().describe("Of plain HTTP and of HTTPS to hosts of routing; may end with *."),
});

const mbps = z.number().min(BANDWIDTH_MIN_MBPS).max(BANDWIDTH_MAX_MBPS).optional();

export const bandwidth = z.looseObject({
  sendMbps: mbps.describe("Megabits per second that the workload may send."),
  receiveMbps: mbps.describe("Megabits per second that the workload may receive."),
});

/** The members that restrict, which a policy of type network has too. */
export const networkRules = {
  bandwidth: bandwidth.optional().describe("The lowest of the workload, its workspace and the server holds."),
  firewall: z
    .looseObject({
      rulesets: z.array(z.string().max(64)).max(fields.LIST_MAX).optional().describe("default, proxy or dedicated-ip."),
      rules: z.array(rule).max(RULES_MAX).optional().describe("The first rule that matches decides."),
    })
    .optional(),
  allowedDomains: domains.optional().describe("Deprecated: use proxy.allowedDomains."),
  forbiddenDomains: domains.optional().describe("Deprecated: use proxy.forbiddenDomains."),
};

export const domainLists = {
  allowedDomains: domains.optional().describe("When not empty, nothing else is reached. Wins over forbiddenDomains."),
  forbiddenDomains: domains.optional(),
};

const proxy = z.looseObject({
  routing: z.array(route).max(RULES_MAX).optional(),
  bypass: domains.optional().describe("Hosts whose connections are never read."),
  ...domainLists,
});

const egress = z.looseObject({
  mode: z.string().max(64).optional().describe("dedicated."),
  gateway: z
    .string()
    .max(128)
    .optional()
    .describe("Egress gateway whose addresses the workload leaves from, and no others."),
});

/** `spec.vpc` of a workload. */
export const vpc = z.string().max(128).describe("The VPC that it belongs to; default `default`.");

/** Of a workload. */
export const network = z.looseObject({ proxy: proxy.optional(), egress: egress.optional(), ...networkRules });

export const networkSecrets = "spec.network.proxy.routing[=destinations].secrets.*";
