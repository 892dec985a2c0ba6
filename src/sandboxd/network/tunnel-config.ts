/** Checks the body of PUT /network/tunnel/config, value by value, before it is used. */
import { isIP } from "node:net";
import { ApiError } from "../http/api-error.ts";

type Rule = { is: (value: unknown) => boolean; text: string };

const isText = (value: unknown): value is string => typeof value === "string";
const integerIn = (least: number, most: number): Rule => ({
  is: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  text: `must be an integer from ${least} to ${most}`,
});
/** 32 bytes, as WireGuard writes keys. */
const KEY: Rule = {
  is: (value) => isText(value) && /^[A-Za-z0-9+/]{43}=$/.test(value),
  text: "must be 32 bytes in base64",
};

const REQUIRED: Record<string, Rule> = {
  local_ip: { is: isNetwork, text: "must be an address, with or without a prefix length" },
  peer_endpoint: { is: isEndpoint, text: "must be HOST:PORT" },
  peer_public_key: KEY,
  private_key: KEY,
};

const OPTIONAL: Record<string, Rule> = {
  mtu: integerIn(576, 65_535),
  listen_port: integerIn(0, 65_535),
  // What the kernel accepts as an interface name.
  interface_name: {
    is: (value) => isText(value) && /^[A-Za-z0-9_.-]{1,15}$/.test(value),
    text: "must be an interface name",
  },
  allowed_ips: {
    is: (value) => Array.isArray(value) && value.length > 0 && value.every(isNetwork),
    text: "must be a list of networks",
  },
  persistent_keepalive: integerIn(0, 65_535),
  route_all: { is: (value) => typeof value === "boolean", text: "must be true or false" },
};

export function checkTunnel(config: string): void {
  const fields = parse(config);
  for (const [name, rule] of Object.entries(REQUIRED)) {
    if (fields[name] === undefined) throw new ApiError(422, `The tunnel configuration lacks "${name}".`);
    check(name, fields[name], rule);
  }
  for (const [name, rule] of Object.entries(OPTIONAL)) if (fields[name] !== undefined) check(name, fields[name], rule);
}

function check(name: string, value: unknown, { is, text }: Rule): void {
  if (!is(value)) throw new ApiError(422, `"${name}" of the tunnel configuration ${text}.`);
}

function parse(config: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(config, "base64").toString("utf8"));
  } catch {
    parsed = null;
  }
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>;
  throw new ApiError(422, '"config" must be a JSON object in base64.');
}

function isNetwork(value: unknown): boolean {
  if (!isText(value)) return false;
  const [address = "", prefix, ...rest] = value.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

function isEndpoint(value: unknown): boolean {
  const match = isText(value) ? /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(value) : null;
  if (!match) return false;
  const port = Number(match[3]);
  return port >= 1 && port <= 65_535 && (match[1] === undefined || isIP(match[1]) === 6);
}
