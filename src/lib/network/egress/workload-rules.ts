/** What the platform's ways out need to know of a workload, and how they hear of changes. */
import type { Bandwidth } from "./bandwidth.ts";
import type { OutboundPolicy } from "./outbound-policy.ts";
import type { Routes } from "./routes.ts";
import type { SourceAddresses } from "./source-addresses.ts";
import type { WorkloadVpc } from "./workload-vpc.ts";

export interface WorkloadRules {
  policy: OutboundPolicy;
  routes: Routes;
  /** Null: the machine chooses the source address. */
  sources: SourceAddresses | null;
  /** Null: no limit. */
  bandwidth: Bandwidth | null;
  /** Null: nobody is known to own the workload. */
  owner: WorkloadOwner | null;
  /** Null: the workload reaches no other workload and no network of the operator. */
  vpc: WorkloadVpc | null;
}

/** The resource that a workload runs for. */
export interface WorkloadOwner {
  workspace: string;
}

export interface RulesSource {
  of(uid: string): Promise<WorkloadRules>;
  /** Calls the listener after the rules of a workload changed. Returns a function that ends this. */
  onChange(listener: (uid: string) => void): () => void;
}

/** A connection or request that was refused. */
export interface Refusal {
  /** For programs, in the header Proxy-Error. */
  code: string;
  host: string;
  port: number;
  /** The place of the rule; absent where the platform itself refuses. */
  rule?: string;
}
