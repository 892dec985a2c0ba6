/** Counts what the outbound rules refuse, and tells the owner of a workload about the first refusals of each rule. */
import { Counter, type Registry } from "prom-client";
import type { Refusal } from "../../lib/network/egress/workload-rules.ts";
import { noteEvent } from "../../store/resources/note-event.ts";
import type { Store } from "../../store/store.ts";
import type { Log } from "../port.ts";
import type { OutboundRules } from "./outbound-rules.ts";

/** Events of one workload about refusals; a workload that tries more hosts does not push out its other events. */
const EVENTS_MAX = 10;
/** Workloads whose told refusals are remembered. */
const WORKLOADS_MAX = 10_000;

interface Parts {
  store: Pick<Store, "resources">;
  registry: Registry;
  rules: Pick<OutboundRules, "ownerOf" | "onChange">;
  log: Log;
}

export function createOutboundRefusals({ store, registry, rules, log }: Parts) {
  const counter = new Counter({
    name: "berth_outbound_refused_total",
    help: "Connections and requests of workloads that were refused, by reason.",
    labelNames: ["reason"],
    registers: [registry],
  });
  /** The refusals that were told, by workload; after a change of its rules a workload hears of them anew. */
  const told = new Map<string, Set<string>>();
  rules.onChange((uid) => told.delete(uid));

  async function tell(uid: string, { host, port, rule, code }: Refusal): Promise<void> {
    log.info({ workload: uid, host, port, rule, code }, "a connection of a workload was refused");
    const owner = await rules.ownerOf(uid);
    if (!owner || owner.retired) return;
    const by = rule ?? "the platform: only public addresses are reachable, and no mail servers";
    await noteEvent(store, owner, { type: "outbound-refused", message: `${host}:${port} is refused by ${by}.` });
  }

  return (uid: string, refused: Refusal): void => {
    counter.inc({ reason: refused.code });
    const known = told.get(uid) ?? new Set();
    const key = `${refused.host}:${refused.port} ${refused.rule ?? refused.code}`;
    if (!isRule(refused.code) || known.has(key) || known.size >= EVENTS_MAX) return;
    told.set(uid, known.add(key));
    const [oldest] = told.keys();
    if (told.size > WORKLOADS_MAX && oldest !== undefined) told.delete(oldest);
    tell(uid, refused).catch((error: unknown) => log.warn({ err: error }, "a refusal could not be told"));
  };
}

/** Refusals that a person can change; names that do not resolve and hosts that are away are none. */
const isRule = (code: string): boolean =>
  /^(?:firewall_blocked|destination_forbidden|port_forbidden|egress_address_missing|other_server)$/.test(code);
