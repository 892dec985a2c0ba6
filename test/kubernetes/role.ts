/** The Role that a server has in the test's cluster: exactly the rules that the documentation tells. */
import type { Target } from "./api-server.ts";

const RULES: { resource: string; verbs: string[]; names?: (instance: string) => string }[] = [
  { resource: "pods", verbs: ["get", "list", "watch", "create", "delete", "patch"] },
  { resource: "pods/log", verbs: ["get"] },
  { resource: "pods/resize", verbs: ["patch"] },
  { resource: "secrets", verbs: ["create"] },
  { resource: "secrets", verbs: ["get"], names: (instance) => `${instance}-workload-key` },
  { resource: "persistentvolumeclaims", verbs: ["get", "create", "delete", "patch"] },
  { resource: "networkpolicies", verbs: ["create"] },
  { resource: "networkpolicies", verbs: ["get", "patch"], names: (instance) => `${instance}-workloads` },
];

export const allows = ({ resource, name, sub }: Target, verb: string, instance: string): boolean =>
  RULES.some(
    (rule) =>
      rule.resource === (sub === undefined ? resource : `${resource}/${sub}`) &&
      rule.verbs.includes(verb) &&
      (rule.names === undefined || name === undefined || name.endsWith(rule.names(instance).replace(instance, ""))),
  );
