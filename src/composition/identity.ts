/** The second phase: who a caller is, at both edges, and the addresses at which people sign in. */
import { createAuthenticator } from "../auth/authenticator.ts";
import { createTokenVerifier } from "../auth/oauth/access-tokens.ts";
import { createMakers } from "../auth/rights/makers.ts";
import { clientUrl, consoleBaseOf } from "../config.ts";
import { type ConsoleBase, consoleHost, consoleUrl } from "../contract/console.ts";
import { RESOURCE_METADATA } from "../contract/protected-resource.ts";
import { createPrincipals } from "../gateway/principals.ts";
import { createCopyCheck } from "../kinds/workload/identity.ts";
import type { Foundation } from "./foundation.ts";
import type { Start } from "./start.ts";

export type Identity = Awaited<ReturnType<typeof startIdentity>>;

export async function startIdentity({ config, clock, settings, stack }: Start, { store }: Foundation) {
  const issuer = (): string => settings.publicUrl;
  const consoleBase = (): ConsoleBase => consoleBaseOf(config, settings.publicUrl);
  const isRunning = createCopyCheck({ store });
  const verifyToken = createTokenVerifier({ store, clock, issuer });
  const authenticator = stack.add(
    createAuthenticator({
      store,
      clock,
      brand: config.brand,
      verifyToken,
      isRunning,
      resourceMetadataUrl: () => `${issuer()}${RESOURCE_METADATA}`,
    }),
  );
  const { makerOf } = stack.add(createMakers({ store, clock, authenticator }));
  return {
    ...{ issuer, consoleBase, isRunning, verifyToken, authenticator, makerOf },
    /** The same as `consoleBase`, known before the port is. */
    baseBeforeListening: consoleBaseOf(config, await clientUrl(config)),
    pagesUrl: (): string => consoleUrl(consoleBase()),
    principals: createPrincipals(authenticator),
  };
}

/** Host names of the platform itself. */
export const hostsOf = ({ baseBeforeListening: base }: Identity): string[] =>
  [new URL(base.publicUrl).hostname, consoleHost(base)].flatMap((host) => host?.replace(/^\[|\]$/g, "") ?? []);
