import { isIP } from "node:net";
import { PlatformError } from "../../contract/errors.ts";
import { lacking } from "../../node/capabilities/need.ts";
import type { Driver } from "../../node/driver.ts";
import { type Implementation, implement, type Settings } from "../port.ts";
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
        // Addresses are reserved, but no traffic leaves by them yet.
        egressAvailable: false,
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

  implement(publicIpList, async ({ query }, { settings }) =>
    query.region !== undefined && !isHere(query.region, settings) ? {} : { [settings.region]: addressesOf(settings) },
  ),
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

function addressesOf({ publicIps }: Settings) {
  const all = [...new Set(publicIps)].map(toCidr);
  return {
    description: "Addresses that traffic of workloads may come from.",
    ipv4Cidrs: all.filter((cidr) => !cidr.includes(":")),
    ipv6Cidrs: all.filter((cidr) => cidr.includes(":")),
  };
}

const toCidr = (address: string): string =>
  isIP(address) === 4 ? `${address}/32` : isIP(address) === 6 ? `${address}/128` : address;
