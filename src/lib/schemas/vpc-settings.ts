/** Settings of VPCs. */
import { z } from "zod";
import { parseOperatorNetwork } from "../network/egress/operator-networks.ts";
import { RuleProblem } from "../network/egress/rule-problem.ts";
import { list } from "./setting-values.ts";

const operatorNetwork = z.string().superRefine((text, context) => {
  try {
    parseOperatorNetwork(text, "");
  } catch (error) {
    if (!(error instanceof RuleProblem)) throw error;
    context.addIssue({ code: "custom", message: error.rule });
  }
});

export const vpcSettings = {
  vpc_networks: {
    env: "BERTH_VPC_NETWORKS",
    schema: list.pipe(z.array(operatorNetwork)).default([]),
    about: "Networks that VPCs may have routes to: CIDRs, each for all workspaces or for one, as in team=10.20.0.0/16.",
  },
} as const;
