/**
 * E2B's builds of templates. A template is an image of the workspace: its id is the image's name, and the id of a build
 * is the tag that is built.
 */
import type { Answered, Control, Endpoint } from "../control.ts";
import { Refusal, unsupported } from "../refusal.ts";
import { archiveOf } from "./archive.ts";
import { planOf, type Template } from "./dockerfile.ts";

const RESOURCE_TYPE = "sandbox";
const TAG_DEFAULT = "latest";
const UPLOAD_PATH = "x-service-upload-path";
/** Lines of one answer; E2B's clients ask until there are no more. */
const LOG_LINES_MAX = 100;

/** `NAME` or `NAME:TAG`; further tags come beside it. */
function named(body: Record<string, unknown>): { name: string; tag: string } {
  const [name = "", ...more] = String(body.name ?? body.alias ?? "").split(":");
  const tags = [...more, ...(Array.isArray(body.tags) ? body.tags.map(String) : [])];
  if (tags.length > 1) throw unsupported("More than one tag for a build of a template");
  return { name, tag: tags[0] ?? TAG_DEFAULT };
}

/** The image waits for its archive from now on, as after `berth image build`. */
export const requestBuild: Endpoint = async (control) => {
  const { name: templateID, tag: buildID } = named(control.body);
  if (templateID === "") throw new Refusal(400, "A template needs a name.");
  await announced(control, templateID, buildID, {});
  control.stepFiles.admit(control.owner, control.nowMs);
  const names = { names: [templateID], aliases: [templateID], tags: [buildID] };
  return { status: 202, body: { templateID, buildID, ...names, public: false } };
};

export const fileAddress: Endpoint = async ({ stepFiles, owner, params, nowMs, address }) => {
  const hash = params[1] ?? "";
  const url = `${address}${stepFiles.addressFor(owner, hash, nowMs)}`;
  return { status: 201, body: { present: (await stepFiles.pathOf(owner, hash)) !== null, url } };
};

export const startBuild: Endpoint = async (control) => {
  const { params, body, stepFiles, owner, send } = control;
  const template = body as Template;
  const { dockerfile, files } = planOf(template);
  const paths: string[] = [];
  for (const hash of files) {
    const path = await stepFiles.pathOf(owner, hash);
    if (path === null) throw new Refusal(400, "Files of a step have not arrived at this server. Build it again.");
    paths.push(path);
  }
  const [name = "", tag = ""] = params;
  const options = { build: { noCache: isForced(template) }, ...credentialsOf(template) };
  await send(await announced(control, name, tag, options), archiveOf(dockerfile, paths));
  return { status: 202 };
};

/** Announces a build to the platform; returns the path for its archive. */
async function announced({ manage }: Control, name: string, tag: string, options: object): Promise<string> {
  let path = "";
  await manage("imageCreate", {
    query: { upload: "true" },
    body: { name, tag, resourceType: RESOURCE_TYPE, ...options },
    told: (headers) => {
      path = headers[UPLOAD_PATH] ?? "";
    },
  });
  return path;
}

const isForced = ({ force, steps }: Template): boolean =>
  force === true || (Array.isArray(steps) && steps.some((step: { force?: unknown } | null) => step?.force === true));

function credentialsOf({ fromImage, fromImageRegistry: registry }: Template): { dockerConfig?: string } {
  if (registry === undefined || registry === null) return {};
  const { type, username, password } = registry as Record<string, unknown>;
  if (type !== "registry") throw unsupported(`Credentials of a registry of the type ${JSON.stringify(type)}`);
  const host = /^([^/]*[.:][^/]*)\//.exec(String(fromImage))?.[1] ?? "https://index.docker.io/v1/";
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  return { dockerConfig: JSON.stringify({ auths: { [host]: { auth } } }) };
}

interface ShownImage {
  metadata: { status?: string; events?: { type?: string; time?: string; message?: string }[] };
}

const imageOf = (control: Control, imageName: string): Promise<ShownImage> =>
  control.manage<ShownImage>("imageGet", { params: { resourceType: RESOURCE_TYPE, imageName } });

const STATUS_OF: Readonly<Record<string, string | undefined>> = { DEPLOYED: "ready", FAILED: "error" };

export const buildStatus: Endpoint = async (control): Promise<Answered> => {
  const [templateID = "", buildID = ""] = control.params;
  const { status = "", events = [] } = (await imageOf(control, templateID)).metadata;
  const start = events.findLast(({ type }) => type === "uploading")?.time;
  const logEntries = start === undefined ? [] : await logsOf(control, start);
  const said = STATUS_OF[status] ?? "building";
  const reason = said === "error" ? { reason: { message: events.at(-1)?.message ?? "", logEntries: [] } } : {};
  return { status: 200, body: { templateID, buildID, status: said, logs: [], logEntries, ...reason } };
};

interface Lines {
  logs: { timestamp: string; message: string }[];
  totalCount: number;
}

/** The lines after those that the client has, oldest first; the platform counts from the newest. */
async function logsOf({ manage, params, query }: Control, start: string): Promise<object[]> {
  const [workloadIds = "", revision = ""] = params;
  const subject = { resourceType: "images", workloadIds, revision, type: "build", start };
  const page = async (limit: number, offset: number): Promise<Lines> => {
    const asked = { ...subject, limit: String(limit), offset: String(offset) };
    return Object.values(await manage<Record<string, Lines>>("logQuery", { query: asked }))[0] ?? NO_LINES;
  };
  const left = (await page(1, 0)).totalCount - Math.max(0, Number(query.get("logsOffset") ?? 0) || 0);
  if (left <= 0) return [];
  const limit = Math.min(left, LOG_LINES_MAX);
  const { logs } = await page(limit, left - limit);
  return logs.toReversed().map(({ timestamp, message }) => ({ timestamp, message, level: "info" }));
}

const NO_LINES: Lines = { logs: [], totalCount: 0 };

export const templateOfAlias: Endpoint = async (control) => {
  const [name = ""] = (control.params[0] ?? "").split(":");
  await imageOf(control, name);
  return { status: 200, body: { templateID: name, public: false } };
};
