/** Warns a caller who asks for packets on a server whose workloads have only the egress proxy. */
import type { PrepareContext } from "../port.ts";

/** `what`: the beginning of the sentence that says what holds instead. */
export async function warnWithoutNat(
  { call, deps }: Pick<PrepareContext, "call" | "deps">,
  what: string,
): Promise<void> {
  const probe = await deps.here.driver.probe().catch(() => null);
  if (probe && probe.outbound !== "nat")
    call.warn(
      `This server has no address translation (nft): ${what} the egress proxy, which takes HTTP and CONNECT. Raw TCP and UDP need address translation.`,
    );
}
