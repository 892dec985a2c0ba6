/** The members that each kind's form shows first; the others are behind "More". */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  sandbox: ["spec.runtime.image", "spec.runtime.memory", "spec.runtime.ttl"],
  agent: ["spec.runtime.image", "spec.runtime.memory"],
  function: ["spec.runtime.image", "spec.runtime.memory", "spec.runtime.transport"],
  job: ["spec.runtime.image", "spec.runtime.memory", "spec.runtime.maxConcurrentTasks", "spec.runtime.timeout"],
  application: ["spec.runtime.image", "spec.runtime.memory"],
  model: ["spec.runtime.type", "spec.runtime.model", "spec.integrationConnections"],
  volume: ["spec.size", "spec.template"],
  drive: ["spec.size"],
  policy: ["spec.type"],
  integrationconnection: ["spec.integration"],
  preview: ["spec.port", "spec.public"],
  schedule: ["schedule", "command"],
  egressgateway: [],
  snapshot: ["name"],
};

export const isFirst = (kind: string, path: string): boolean =>
  ["metadata.name", "name", ...(FIRST[kind] ?? [])].includes(path);

/** What a new form begins with. */
const BEGIN: Readonly<Record<string, object>> = {
  model: { metadata: {}, spec: { runtime: { type: "mock", model: "mock" } } },
};

export const beginning = (kind: string): object => BEGIN[kind] ?? {};
