/**
 * Every endpoint of the in-sandbox API, in order of matching. Patterns see the path exactly as it was sent; groups are
 * handed over undecoded. Handlers are loaded at their first use: a sandbox that only runs commands never pays for the
 * rest.
 */
import type { Handler } from "./http/call.ts";

export interface Route {
  pattern: RegExp;
  methods: Record<string, () => Promise<Handler>>;
}

/** Routes that touch files run with the rights of BL_SANDBOX_USER. MCP tools are selected by name instead. */
export const FILE_PATHS = /^\/(filesystem|watch\/filesystem|codegen|e2b\/file)/;

const process = () => import("./process/process-api.ts");
const files = () => import("./files/files-api.ts");
const tree = () => import("./files/tree-api.ts");
const uploads = () => import("./files/uploads-api.ts");
const watch = () => import("./files/watch-api.ts");
const search = () => import("./search/search-api.ts");
const network = () => import("./network/network-api.ts");
const system = () => import("./system/system-api.ts");
const codegen = () => import("./search/codegen-api.ts");
const terminal = () => import("./terminal/terminal-api.ts");
const stdin = () => import("./process/stdin-api.ts");
const move = () => import("./files/move-api.ts");
const mcp = () => import("./mcp/mcp-api.ts");
const e2bFiles = () => import("./e2b/files-http.ts");

export const ROUTES: Route[] = [
  {
    pattern: /^\/process\/?$/,
    methods: { GET: async () => (await process()).listProcesses, POST: async () => (await process()).exec },
  },
  { pattern: /^\/process\/([^/]+)\/logs$/, methods: { GET: async () => (await process()).getLogs } },
  { pattern: /^\/process\/([^/]+)\/logs\/stream$/, methods: { GET: async () => (await process()).streamLogs } },
  { pattern: /^\/process\/([^/]+)\/kill$/, methods: { DELETE: async () => (await process()).killProcess } },
  { pattern: /^\/process\/([^/]+)\/stdin$/, methods: { POST: async () => (await stdin()).postStdin } },
  {
    pattern: /^\/process\/([^/]+)$/,
    methods: { GET: async () => (await process()).getProcess, DELETE: async () => (await process()).stopProcess },
  },

  // The pattern matches every path that begins with "tree"; such a relative file is reached by its absolute path.
  {
    pattern: /^\/filesystem\/tree(.*)$/,
    methods: {
      GET: async () => (await tree()).getTree,
      PUT: async () => (await tree()).putTree,
      DELETE: async () => (await tree()).deleteTree,
    },
  },
  {
    pattern: /^\/filesystem(?:\/(.*))?$/,
    methods: {
      GET: async () => (await files()).getFile,
      PUT: async () => (await files()).putFile,
      DELETE: async () => (await files()).deleteFile,
    },
  },

  { pattern: /^\/filesystem-multipart\/?$/, methods: { GET: async () => (await uploads()).listUploads } },
  {
    pattern: /^\/filesystem-multipart\/initiate\/(.*)$/,
    methods: { POST: async () => (await uploads()).initiateUpload },
  },
  { pattern: /^\/filesystem-multipart\/([^/]+)\/part$/, methods: { PUT: async () => (await uploads()).putPart } },
  { pattern: /^\/filesystem-multipart\/([^/]+)\/parts$/, methods: { GET: async () => (await uploads()).listParts } },
  {
    pattern: /^\/filesystem-multipart\/([^/]+)\/complete$/,
    methods: { POST: async () => (await uploads()).completeUpload },
  },
  {
    pattern: /^\/filesystem-multipart\/([^/]+)\/abort$/,
    methods: { DELETE: async () => (await uploads()).abortUpload },
  },

  { pattern: /^\/filesystem-move\/(.*)$/, methods: { POST: async () => (await move()).moveFile } },
  { pattern: /^\/watch\/filesystem(?:\/(.*))?$/, methods: { GET: async () => (await watch()).watchFolder } },
  { pattern: /^\/filesystem-find(?:\/(.*))?$/, methods: { GET: async () => (await search()).findFiles } },
  { pattern: /^\/filesystem-search(?:\/(.*))?$/, methods: { GET: async () => (await search()).searchFiles } },
  {
    pattern: /^\/filesystem-content-search(?:\/(.*))?$/,
    methods: { GET: async () => (await search()).searchContent },
  },

  { pattern: /^\/network\/process\/([^/]+)\/ports$/, methods: { GET: async () => (await network()).getPorts } },
  {
    pattern: /^\/network\/process\/([^/]+)\/monitor$/,
    methods: { POST: async () => (await network()).startMonitor, DELETE: async () => (await network()).stopMonitor },
  },
  { pattern: /^\/network\/tunnel\/config$/, methods: { PUT: async () => (await network()).putTunnel } },
  { pattern: /^\/network\/tunnel$/, methods: { DELETE: async () => (await network()).deleteTunnel } },

  {
    pattern: /^\/drives\/mount\/?$/,
    methods: { GET: async () => (await system()).listDrives, POST: async () => (await system()).refuseMount },
  },
  { pattern: /^\/drives\/mount\/(.+)$/, methods: { DELETE: async () => (await system()).refuseMount } },

  { pattern: /^\/health$/, methods: { GET: async () => (await system()).getHealth } },
  { pattern: /^\/upgrade$/, methods: { POST: async () => (await system()).upgrade } },
  { pattern: /^\/environment\/reload$/, methods: { POST: async () => (await system()).reloadEnvironment } },

  { pattern: /^\/codegen\/fastapply\/(.*)$/, methods: { PUT: async () => (await codegen()).fastApply } },
  { pattern: /^\/codegen\/reranking(?:\/(.*))?$/, methods: { GET: async () => (await codegen()).rerank } },

  { pattern: /^\/terminal\/?$/, methods: { GET: async () => (await terminal()).getPage } },
  { pattern: /^\/terminal\/ws$/, methods: { GET: async () => (await terminal()).refuseWithoutUpgrade } },
  { pattern: /^\/mcp\/?$/, methods: { POST: async () => (await mcp()).postMcp } },

  // The API that E2B's clients expect inside a sandbox.
  {
    pattern: /^\/e2b\/process\.Process\/(\w+)$/,
    methods: { POST: async () => (await import("./e2b/process-service.ts")).processService },
  },
  {
    pattern: /^\/e2b\/filesystem\.Filesystem\/(\w+)$/,
    methods: { POST: async () => (await import("./e2b/filesystem-service.ts")).filesystemService },
  },
  {
    pattern: /^\/e2b\/files$/,
    methods: { GET: async () => (await e2bFiles()).getFiles, POST: async () => (await e2bFiles()).postFiles },
  },
  { pattern: /^\/e2b\/metrics$/, methods: { GET: async () => (await import("./e2b/metrics.ts")).getMetrics } },
  { pattern: /^\/e2b\/health$/, methods: { GET: async () => (await import("./e2b/health.ts")).getHealth } },
];

/** Endpoints of the API that are served elsewhere or not at all; the answer says where to go. */
export const ELSEWHERE: { pattern: RegExp; sentence: string }[] = [
  {
    pattern: /^\/port\/\d+(\/|$)/,
    sentence: "Ports of a sandbox are served by the platform's gateway, at {sandbox address}/port/{number}.",
  },
];
