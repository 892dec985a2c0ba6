/** Wakes a sandbox for a request that the platform itself makes. */

import { SECOND_MS } from "../../lib/time/clock.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";
import { type Sandbox, sandbox as sandboxKind } from "./kind.ts";

/** How long to wait for a sandbox to wake before it counts as unreachable. */
const WAKE_MS = 30 * SECOND_MS;

/** Records that the sandbox is wanted and waits until it runs. */
export async function awake(
  workspace: string,
  uid: string,
  { store, clock }: Pick<Platform, "store" | "clock">,
  stop?: AbortSignal,
): Promise<Endpoint> {
  const running = (sandbox: Resource | null): Endpoint | undefined =>
    sandbox ? runningEndpoint(ofKind(sandboxKind, sandbox)) : undefined;
  await store.resources.update(workspace, uid, (current) =>
    running(current) ? null : { state: { ...current.state, wantedAt: clock.now() } },
  );
  const limit = AbortSignal.timeout(WAKE_MS);
  const signal = stop ? AbortSignal.any([stop, limit]) : limit;
  const sandbox = await store.resources
    .waitFor(workspace, uid, (now) => !isComing(now) || running(now) !== undefined, { signal })
    .catch(() => null);
  const endpoint = running(sandbox);
  if (endpoint) return endpoint;
  throw new Error(
    sandbox ? `The sandbox is ${sandbox.status}.` : `The sandbox was not awake within ${WAKE_MS / SECOND_MS} seconds.`,
  );
}

const runningEndpoint = ({ state }: Sandbox): Endpoint | undefined =>
  state.instances?.find(({ phase }) => phase === "running")?.endpoint;

const isComing = (sandbox: Resource | null): boolean =>
  sandbox !== null && sandbox.deletedAt === null && !["FAILED", "DEACTIVATED"].includes(sandbox.status ?? "");
