/** E2B's control API: each endpoint is a translation to operations of the management API. */
import type { Endpoint } from "./control.ts";
import { connect, create, fork, get, kill, list, pause, setTimeout } from "./sandboxes.ts";
import { createSnapshot, deleteTemplate, listSnapshots, listTemplates } from "./snapshots.ts";
import { buildStatus, fileAddress, requestBuild, startBuild, templateOfAlias } from "./templates/endpoints.ts";

export interface Route {
  method: string;
  pattern: RegExp;
  serve: Endpoint;
  /** The endpoint needs the node that has the sandbox of its path. */
  placed?: true;
}

const ID = "([^/]+)";
const at = (method: string, path: string, serve: Endpoint): Route => ({
  method,
  pattern: new RegExp(`^(?:/v[23])?${path.replaceAll("{}", ID)}/?$`),
  serve,
});

export const CONTROL_ROUTES: readonly Route[] = [
  at("POST", "/sandboxes", create),
  at("GET", "/sandboxes", list),
  at("GET", "/sandboxes/{}", get),
  at("DELETE", "/sandboxes/{}", kill),
  at("POST", "/sandboxes/{}/timeout", setTimeout),
  at("POST", "/sandboxes/{}/connect", connect),
  at("POST", "/sandboxes/{}/resume", connect),
  { ...at("POST", "/sandboxes/{}/pause", pause), placed: true },
  { ...at("POST", "/sandboxes/{}/fork", fork), placed: true },
  at("POST", "/sandboxes/{}/snapshots", createSnapshot),
  at("GET", "/snapshots", listSnapshots),
  at("GET", "/templates", listTemplates),
  at("POST", "/templates", requestBuild),
  at("GET", "/templates/aliases/{}", templateOfAlias),
  at("GET", "/templates/{}/files/{}", fileAddress),
  at("POST", "/templates/{}/builds/{}", startBuild),
  at("GET", "/templates/{}/builds/{}/status", buildStatus),
  at("DELETE", "/templates/{}", deleteTemplate),
];
