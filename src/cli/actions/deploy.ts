/** `berth deploy`: from a folder of code to a URL that answers. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../../client/api-error.ts";
import type { AnswerHeaders, Client } from "../../client/client.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { archiveOf } from "../archive.ts";
import { tellCallbackSecrets } from "../callback-secrets.ts";
import { type Invocation, text } from "../command.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { type Project, readProjects } from "../project.ts";
import { connect, givenEnvs, variablesOf } from "./call-input.ts";
import { tellWhenInterrupted } from "./interrupted.ts";
import { createReader, type LogReader } from "./logs.ts";
import { applyFiles } from "./manifests.ts";
import { giveShare, keepShare, tellShare } from "./new-share.ts";

const LOOK_MS = 500;
/** Longest wait for build and start together; the build of an image may take half an hour, and may wait for others. */
const PATIENCE_MS = 45 * 60_000;
/** Resources beside the code, applied before it. */
const RESOURCE_FOLDERS = [".berth", ".service"];
/** Margin for clocks that differ; lines of an earlier build are told apart by its revision. */
const LOGS_BEFORE_MS = 60_000;

export async function deploy(nouns: readonly Noun[], call: Invocation): Promise<number | undefined> {
  const { context, options } = call;
  const dir = text(call.args[0]) ?? ".";
  const projects = readProjects(dir, {
    variables: variablesOf(call),
    envs: givenEnvs(call),
    brand: context.env.BERTH_BRAND,
  });
  const name = text(options.name);
  if (name !== undefined && projects.length > 1)
    throw new UsageError("--name is for one resource, and this folder has several.");
  for (const project of projects) if (name !== undefined) project.name = name;
  for (const project of projects) giveShare(deployable(nouns, project.kind), project, text(options.traffic));
  const applied = await applyBeside(nouns, dir, call);
  if (applied !== undefined && applied !== EXIT.ok) return applied;
  for (const project of projects) {
    const url = await deployOne(deployable(nouns, project.kind), project, nouns, call);
    if (url === null) return EXIT.failure;
    context.print(url);
  }
  return EXIT.ok;
}

async function applyBeside(nouns: readonly Noun[], dir: string, call: Invocation): Promise<number | undefined> {
  const file = RESOURCE_FOLDERS.map((folder) => join(dir, folder)).filter((folder) => existsSync(folder));
  return file.length === 0 ? undefined : applyFiles(nouns, { ...call, options: { ...call.options, file } });
}

function deployable(nouns: readonly Noun[], kind: string): Noun {
  const noun = findNoun(nouns, kind);
  if (takesCode(noun) || noun.name === "sandbox") return noun;
  const possible = nouns.filter(takesCode).map((each) => each.name);
  throw new UsageError(`type = "${kind}" cannot be deployed.`, `it can be ${possible.join(", ")}`);
}

const takesCode = (noun: Noun): boolean => noun.verbs.get("create")?.query?.shape.upload !== undefined;

/** The deployed URL, or null when the deployment failed. */
async function deployOne(
  noun: Noun,
  project: Project,
  nouns: readonly Noun[],
  call: Invocation,
): Promise<string | null> {
  const { context, options } = call;
  const client = connect({
    ...call,
    options: { ...options, workspace: options.workspace ?? project.workspace ?? undefined },
  });
  const sendsCode = project.image === null && options.skipBuild !== true;
  if (sendsCode && !takesCode(noun))
    throw new UsageError(`a ${noun.name} runs an image: ${project.name} names none.`, "set image in the deploy file");
  context.note(`${noun.name} ${project.name}`);
  if (options.skipBuild === true) await keepImage(noun, project, client);
  const before = await currentOf(noun, project, client);
  if (before !== null) keepShare(noun, project, before);
  const answer = await put(noun, project, client, { upload: sendsCode, isNew: before === null });
  tellCallbackSecrets(answer.body, context.note);
  if (sendsCode) await send(project.dir, answer.headers.get("x-service-upload-url"), call);
  // A kind that is only stored is complete as soon as it was accepted.
  if (noun.kind?.initialStatus === undefined) return String(memberAt(answer.body, "metadata.url"));
  const logs = createReader(client, operationOf(findNoun(nouns, "log"), "query"), {
    resourceType: noun.kind?.plural ?? noun.plural,
    workloadIds: project.name,
    type: "build",
  });
  const { name } = project;
  const lines = [
    `The deployment of ${name} goes on. Look with \`berth get ${noun.name} ${name}\`, read with \`berth logs ${noun.name}/${name}\`.`,
  ];
  const end = await tellWhenInterrupted(lines, context, () =>
    follow(noun, name, { call, client, logs: sendsCode ? logs : null }),
  );
  if (memberAt(end, "status") !== "DEPLOYED") return null;
  tellShare(end, context.note);
  return String(memberAt(end, "metadata.url"));
}

/** A resource that runs an image keeps it, unless the file names another. */
async function keepImage(noun: Noun, { name, image, spec }: Project, client: Client): Promise<void> {
  if (image !== null) return;
  const current = await read(noun, name, client);
  const flat = memberAt(current, "spec.image");
  const nested = memberAt(current, "spec.runtime.image");
  if (typeof flat === "string") spec.image = flat;
  if (typeof nested === "string") spec.runtime = { ...(spec.runtime as object), image: nested };
}

async function send(dir: string, url: string | null, { context }: Invocation): Promise<void> {
  if (!url) throw new ApiError({ status: 502, code: "upload", message: "The server gave no upload address." });
  const archive = archiveOf(dir);
  context.note(`sending ${Math.ceil(archive.length / 1024)} KB`);
  const sent = await fetch(url, { method: "PUT", body: archive, headers: { "content-type": "application/gzip" } });
  if (!sent.ok) throw new ApiError({ status: sent.status, code: "upload", message: await sent.text() });
}

/** Replaces or creates the resource; the answer says where to upload an archive. */
async function put(
  noun: Noun,
  { name, spec }: Project,
  client: Client,
  { upload, isNew }: { upload: boolean; isNew: boolean },
): Promise<{ headers: AnswerHeaders; body: unknown }> {
  const input = { ...(upload ? { query: { upload } } : {}), body: { metadata: { name }, spec } };
  if (isNew) return client.send(operationOf(noun, "create"), input);
  const update = operationOf(noun, "update");
  const params = { [update.params.at(-1) ?? ""]: name };
  return client.send(update, { ...input, params }).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    return client.send(operationOf(noun, "create"), input);
  });
}

const read = (noun: Noun, name: string, client: Client): Promise<unknown> => {
  const get = operationOf(noun, "get");
  return client.call(get, { params: { [get.params.at(-1) ?? ""]: name } });
};

/** The record before the deployment, or null: a replacement of a missing one would stand in the audit log as a failure. */
const currentOf = (noun: Noun, { name }: Project, client: Client): Promise<unknown> =>
  read(noun, name, client).catch((error: unknown) => {
    if (isMissing(error)) return null;
    // Credentials that may write and not read.
    if (error instanceof ApiError && error.status === 403) return {};
    throw error;
  });

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

interface Following {
  call: Invocation;
  client: Client;
  /** Reads the build's log; null when there is none. */
  logs: LogReader | null;
}

/** Shows each step and each line of the build, until it is deployed or has failed. */
async function follow(noun: Noun, name: string, { call, client, logs }: Following): Promise<unknown> {
  const { context } = call;
  const begunMs = context.now();
  let told = "";
  while (context.now() < begunMs + PATIENCE_MS) {
    const resource = await read(noun, name, client);
    const events = (memberAt(resource, "events") ?? []) as {
      time: string;
      type: string;
      message?: string;
      revision?: string;
    }[];
    const begun = Math.max(
      0,
      events.findLastIndex(({ type }) => ["uploaded", "created", "updated"].includes(type)),
    );
    const revision = events[begun]?.revision;
    for (const line of (await logs?.read(begunMs - LOGS_BEFORE_MS, Number.POSITIVE_INFINITY)) ?? [])
      if (revision === undefined || line.revision === revision) context.note(`  ${line.message}`);
    for (const { time, type, message } of events.slice(begun)) {
      if (time <= told) continue;
      told = time;
      context.note(`${type}: ${message ?? ""}`);
    }
    const status = memberAt(resource, "status");
    if (status === "DEPLOYED" || status === "FAILED" || status === "DEACTIVATED") return resource;
    await pause(LOOK_MS);
  }
  throw new ApiError({ status: 504, code: "timeout", message: "It is not deployed yet; look again with `berth get`." });
}
