/**
 * One resource of every kind, in an order in which each may name those before it. What a kind of resource is needed for
 * that only the platform writes (executions of schedules) appears when what stands before it has run.
 */
export interface Specimen {
  kind: string;
  /** Below /v0. */
  collection: string;
  /** Absent = the platform names it. */
  name?: string;
  /** Query of the create. */
  query?: string;
  body: object;
  /** Files of the archive that the create's answer asks for. */
  files?: Record<string, string>;
  /** Members that an update sends beside what was read; absent = the kind has no update. */
  change?: { metadata?: object; spec?: object } & Record<string, unknown>;
}

export const SECRET = "a secret that only its owner reads";
const SERVER = `require("node:http").createServer((request, response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ secret: process.env.PASSWORD ?? null, url: request.url }));
}).listen(process.env.PORT, process.env.HOST);
`;

const named = (name: string, spec: object, labels: Record<string, string> = {}): object => ({
  metadata: { name, displayName: `The ${name}`, labels: { made: "for-tests", ...labels } },
  spec,
});
const renamed = { metadata: { displayName: "Another name", labels: { made: "for-tests", changed: "yes" } } };
const envs = [
  { name: "GREETING", value: "hello" },
  { name: "PASSWORD", value: SECRET, secret: true },
];
const runtime = { memory: 256, envs };

export const EVERY_KIND: readonly Specimen[] = [
  {
    kind: "policy",
    collection: "/policies",
    name: "cap",
    body: named("cap", {
      type: "maxToken",
      resourceTypes: ["model"],
      maxTokens: { granularity: "day", total: 90_000 },
    }),
    change: renamed,
  },
  {
    kind: "integrationconnection",
    collection: "/integrations/connections",
    name: "provider",
    body: named("provider", { integration: "openai", secret: { apiKey: SECRET } }),
    change: renamed,
  },
  {
    kind: "model",
    collection: "/models",
    name: "parrot",
    body: named("parrot", { runtime: { type: "mock", model: "mock" }, policies: ["cap"] }),
    change: renamed,
  },
  {
    kind: "drive",
    collection: "/drives",
    name: "shared",
    body: named("shared", { size: 64, permissions: [{ mode: "read-write", path: "/" }] }),
    change: renamed,
  },
  {
    kind: "volumetemplate",
    collection: "/volume_templates",
    name: "seed",
    query: "?upload=true",
    body: named("seed", { defaultSize: 16, description: "Where volumes begin" }),
    files: { "seed.txt": "sown\n" },
    change: renamed,
  },
  {
    kind: "volume",
    collection: "/volumes",
    name: "disk",
    body: named("disk", { size: 16, template: "seed" }),
    change: renamed,
  },
  { kind: "volumesnapshot", collection: "/volumes/disk/snapshots", body: { name: "before" } },
  { kind: "vpc", collection: "/vpcs", name: "net", body: named("net", {}) },
  { kind: "egressgateway", collection: "/vpcs/net/egressgateways", name: "out", body: named("out", {}) },
  {
    kind: "egressip",
    collection: "/vpcs/net/egressgateways/out/ips",
    name: "address",
    body: named("address", { ipFamily: "IPv4" }),
  },
  {
    kind: "customdomain",
    collection: "/customdomains",
    name: "apps.example.test",
    body: named("apps.example.test", { domainType: "previews" }),
    change: renamed,
  },
  {
    kind: "sandbox",
    collection: "/sandboxes",
    name: "box",
    body: named("box", { runtime, volumes: [{ name: "disk", mountPath: "/disk" }] }, { team: "red" }),
    change: renamed,
  },
  {
    kind: "preview",
    collection: "/sandboxes/box/previews",
    name: "web",
    body: named("web", { port: 3000, public: false, responseHeaders: { "x-made-by": "tests" } }),
    change: { spec: { port: 3001 } },
  },
  {
    kind: "previewtoken",
    collection: "/sandboxes/box/previews/web/tokens",
    body: { metadata: { name: "visitor" }, spec: { expiresAt: "2099-01-01T00:00:00Z" } },
  },
  {
    kind: "schedule",
    collection: "/sandboxes/box/schedules",
    name: "nightly",
    body: { id: "nightly", type: "cron", value: "0 3 * * *", input: { command: "true", env: { PASSWORD: SECRET } } },
    change: { value: "0 4 * * *" },
  },
  {
    kind: "schedule",
    collection: "/sandboxes/box/schedules",
    // It is gone once it has run.
    body: { id: "soon", type: "sleep", value: "1s", input: { command: "echo ran > /tmp/ran" } },
  },
  { kind: "snapshot", collection: "/sandboxes/box/snapshots", body: { name: "before" } },
  {
    kind: "agent",
    collection: "/agents",
    name: "speaker",
    query: "?upload=true",
    body: named("speaker", {
      runtime,
      triggers: [{ id: "later", type: "http-async", configuration: { path: "agents/speaker/later" } }],
    }),
    files: { "index.js": SERVER },
    change: renamed,
  },
  {
    kind: "function",
    collection: "/functions",
    name: "tool",
    query: "?upload=true",
    body: named("tool", { runtime: { ...runtime, transport: "http-stream" } }),
    files: { "index.js": SERVER },
    change: renamed,
  },
  {
    kind: "application",
    collection: "/applications",
    name: "site",
    query: "?upload=true",
    body: named("site", { memory: 256, envs }),
    files: { "index.js": SERVER },
    change: renamed,
  },
  {
    kind: "job",
    collection: "/jobs",
    name: "batch",
    query: "?upload=true",
    body: named("batch", {
      runtime: { ...runtime, maxRetries: 1 },
      triggers: [{ id: "hourly", type: "cron", configuration: { schedule: "0 * * * *" } }],
    }),
    files: { "index.js": "console.log(process.env.PASSWORD ? 'it knows' : 'it does not know');\n" },
    change: renamed,
  },
];

/** Kinds that clients only read. */
export const WRITTEN_BY_THE_PLATFORM = ["scheduleexecution"];
