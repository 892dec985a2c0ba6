/** Tokens by which a workload proves to others who it is; a route says where they go and for whom they are meant. */
import type { FilledRoute, Route } from "../../lib/network/egress/routes.ts";
import { type EgressRefusal, refusal } from "./refusal.ts";

/** A token of this workload for an audience. */
export type IdentityOf = (uid: string, audience: string) => Promise<string>;

const UNAVAILABLE = refusal(503, "identity_unavailable", "The token of this workload cannot be made now; try again.");

/** The audiences are those that the routes name: texts of the workload are not looked at. */
export async function withIdentities(
  routes: readonly Route[],
  { uid, identityOf }: { uid: string; identityOf: IdentityOf },
): Promise<FilledRoute[] | EgressRefusal> {
  try {
    return await Promise.all(
      routes.map(async (route) => {
        const made = await Promise.all(
          route.audiences.map(async (each) => [each, await identityOf(uid, each)] as const),
        );
        return { ...route, identities: Object.fromEntries(made) };
      }),
    );
  } catch {
    return UNAVAILABLE;
  }
}

/** Where nobody makes tokens. */
export const NO_IDENTITIES: IdentityOf = () => Promise.reject(new Error("nobody makes tokens of workloads here"));
