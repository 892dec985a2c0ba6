import { isIP } from "node:net";
import type { Caller } from "../../contract/caller.ts";
import { PlatformError } from "../../contract/errors.ts";
import { lacking } from "../../node/capabilities/need.ts";
import type { Driver } from "../../node/driver.ts";
import { isDeployed } from "../egress-ip/holdings.ts";
import { egressIp } from "../egress-ip/kind.ts";
import { type Implementation, implement, type Platform, type Settings } from "../port.ts";
import { isHere } from "../region.ts";
import { configurationGet, locationList, publicIpList } from "./operations.ts";

export const configurationHandlers: readonly Implementation[] = [
  implement(configurationGet, async (_call, { settings, here }) => ({
    continents: namedOnce(settings.continent),
    countries: namedOnce(settings.country),
    regions: [
      {
        name: settings.region,
        location: settings.region,
        ...placeOf(settings),
        infoGeneration: "mk3",
        drivesAvailable: true,
        egressAvailable: settings.egressPool.length > 0,
        proxyAvailable: false,
        mk31Available: false,
        isolation: await isolationOf(here.driver),
      },
    ],
    detectedRegion: settings.region,
    privateLocations: [],
  })),

  implement(locationList, async (_call, { settings }) => [
    {
      location: settings.region,
      region: settings.region,
      ...placeOf(settings),
      status: "available",
      flavors: [...settings.flavors],
    },
  ]),

  implement(publicIpList, async ({ query, caller }, deps) => {
    const { settings } = deps;
    if (query.region !== undefined && !isHere(query.region, settings)) return {};
    return { [settings.region]: cidrsOf([...settings.publicIps, ...(await egressAddresses(caller, deps))]) };
  }),
];

/** Continent and country come from the operator's configuration; the server does not guess them. */
const placeOf = ({ continent, country }: Settings) => ({ continent, country });

const namedOnce = (name: string) => (name === "" ? [] : [{ name, displayName: name }]);

async function isolationOf(driver: Driver) {
  try {
    const { freezer: _, ...isolation } = await driver.probe();
    return { ...isolation, missing: [...isolation.missing, ...(await lacking(driver))] };
  } catch (error) {
    return {
      grade: "unavailable" as const,
      missing: [error instanceof PlatformError ? error.message : "See the log."],
    };
  }
}

/** Egress IPs of one workspace that are listed. */
const EGRESS_IPS_MAX = 1000;

/** The addresses that workloads in the caller's workspaces leave from. */
async function egressAddresses({ bound, subject }: Caller, { store }: Platform): Promise<string[]> {
  const workspaces = bound ? [bound.workspace] : (await store.workspaces.listFor(subject)).map(({ name }) => name);
  const found: string[] = [];
  for (const workspace of workspaces) {
    const ips = await store.resources.listNested(workspace, egressIp.name, EGRESS_IPS_MAX);
    found.push(...ips.filter(isDeployed).map(({ spec }) => String(spec.publicIp)));
  }
  return found;
}

function cidrsOf(addresses: readonly string[]) {
  const all = [...new Set(addresses)].map(toCidr);
  return {
    description: "Addresses that traffic of workloads may come from.",
    ipv4Cidrs: all.filter((cidr) => !cidr.includes(":")),
    ipv6Cidrs: all.filter((cidr) => cidr.includes(":")),
  };
}

const toCidr = (address: string): string =>
  isIP(address) === 4 ? `${address}/32` : isIP(address) === 6 ? `${address}/128` : address;
