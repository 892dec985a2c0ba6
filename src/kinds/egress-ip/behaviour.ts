import { parentsOf } from "../egress-gateway/behaviour.ts";
import { type Behaviour, implement, workspaceOf } from "../port.ts";
import { toWire } from "../present.ts";
import { assignAddress } from "./addresses.ts";
import { egressIp, egressIpListAll } from "./kind.ts";

/** Addresses in the list over all gateways. A workspace with more lists them gateway by gateway. */
const FLAT_LIST_MAX = 1000;

export const egressIpBehaviour: Behaviour = {
  kind: egressIp,
  prepare(input) {
    input.spec.ipFamily ??= "IPv4";
  },
  onCreate: assignAddress,
  present(wire, _resource, { parents }) {
    wire.metadata.vpcName = parents[0]?.name;
    wire.metadata.gatewayName = parents[1]?.name;
  },
  handlers: [
    implement(egressIpListAll, async (call, deps) => {
      const ips = await deps.store.resources.listNested(workspaceOf(call).name, "egressip", FLAT_LIST_MAX);
      const parents = await parentsOf(ips, deps);
      return ips.map((ip) =>
        toWire(egressIpBehaviour, ip, { parents: parents.get(ip.parent) ?? [], inList: true }, deps),
      );
    }),
  ],
};
