/** The registries that this server may pull from, as the operator decided: mirrors, certificates, plain HTTP. */

import { hostOf, type Reference } from "../contract/image-reference.ts";
import { type FindCredentials, firstOf } from "./credentials.ts";
import { RegistryProblem } from "./problem.ts";
import { Repository, type Source } from "./repository.ts";
import { createTransport } from "./transport.ts";

export interface RegistriesOptions {
  /** Whether registries that tenants name may have private addresses. */
  privateAddresses: boolean;
  /** Registries that images may come from; null = any. */
  allowed: readonly string[] | null;
  mirrors: readonly Mirror[];
  /** Hosts that are spoken to without TLS, beside loopback. */
  plainHttp: readonly string[];
  /** Certificates (PEM) to trust beside those of the system. */
  ca?: string;
  /** The operator's own credentials, used for every workspace. */
  credentials: FindCredentials;
}

/** `docker.io=mirror.example.com/hub`: asked before the registry itself. The operator's credentials apply. */
export interface Mirror {
  registry: string;
  host: string;
  /** Path before the repository; empty or ending in a slash. */
  prefix: string;
  plain: boolean;
}

const MIRROR = /^([^=\s]+)=(https?:\/\/)?([^\s/=]+)((?:\/[^\s/=]+)*)\/?$/;

/** Null for a text that names no mirror. */
export function parseMirror(text: string): Mirror | null {
  const [, registry, scheme, host, path = ""] = MIRROR.exec(text) ?? [];
  if (registry === undefined || host === undefined) return null;
  const prefix = path === "" ? "" : `${path.slice(1)}/`;
  return { registry, host, prefix, plain: scheme === "http://" || (scheme === undefined && isLoopbackHost(host)) };
}

export interface Registries {
  /** Where to ask for an image, the mirrors first. Throws for a registry that the operator does not allow. */
  sourcesOf(reference: Reference, credentials: FindCredentials): Source[];
  stop(): Promise<void>;
}

export function createRegistries(options: RegistriesOptions): Registries {
  const { privateAddresses, allowed, mirrors, plainHttp, credentials: own } = options;
  const ca = options.ca === undefined ? {} : { ca: options.ca };
  const toRegistries = createTransport({ privateAddresses, ...ca });
  // The operator named the mirrors, so their addresses may be private.
  const toMirrors = createTransport({ privateAddresses: true, ...ca });
  return {
    sourcesOf({ registry, repository }, credentials) {
      if (allowed && !allowed.includes(registry))
        throw new RegistryProblem("refused", `images from ${registry} are not allowed on this server`);
      const host = hostOf(registry);
      const mirrored = mirrors.filter((mirror) => mirror.registry === registry);
      return [
        ...mirrored.map(
          (mirror) =>
            new Repository({
              ...{ host: mirror.host, plain: mirror.plain, path: `${mirror.prefix}${repository}` },
              ...{ credentials: async () => own(mirror.host), transport: toMirrors },
            }),
        ),
        new Repository({
          ...{ host, plain: isLoopbackHost(host) || plainHttp.includes(host), path: repository },
          ...{ credentials: async () => firstOf(credentials, own)(registry), transport: toRegistries },
        }),
      ];
    },
    async stop() {
      await Promise.all([toRegistries.stop(), toMirrors.stop()]);
    },
  };
}

/** Docker's rule: a registry on this machine is spoken to without TLS. */
const isLoopbackHost = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/.test(host);

/** Asks one source after the other. The failure of the last one counts: it is the registry itself. */
export async function fromFirst<T>(sources: readonly Source[], ask: (source: Source) => Promise<T>): Promise<T> {
  let last: unknown = new RegistryProblem("unreachable", "no registry was asked");
  for (const source of sources) {
    try {
      return await ask(source);
    } catch (error) {
      if (!(error instanceof RegistryProblem)) throw error;
      last = error;
    }
  }
  throw last;
}
