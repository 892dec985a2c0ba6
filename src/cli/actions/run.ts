/** Sends one request to a running workload and shows the answer as it streams in. */
import { createReadStream, existsSync } from "node:fs";
import { Readable } from "node:stream";
import { ApiError } from "../../client/api-error.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text, texts } from "../command.ts";
import { resolveConnection } from "../connection.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { writeAnswer } from "./answer-text.ts";
import { connect } from "./call-input.ts";
import { tellWhenInterrupted } from "./interrupted.ts";
import { waitForExecution } from "./job-wait.ts";

/** Default path of a request, by kind. */
const PATH_DEFAULT: Record<string, string> = { function: "/mcp" };

export async function runWorkload(noun: Noun, name: string, call: Invocation): Promise<number> {
  const { options, context } = call;
  const target = await addressOf(noun, name, call);
  const path = text(options.path) ?? PATH_DEFAULT[noun.name] ?? "";
  const body = await bodyOf(call);
  const method = (text(options.method) ?? (body === null ? "GET" : "POST")).toUpperCase();
  const separator = path === "" || path.startsWith("/") || path.startsWith("?") ? "" : "/";
  const response = await fetch(`${target.url}${separator}${path}`, {
    method,
    redirect: "manual",
    headers: {
      ...(body === null ? {} : { "content-type": body.type }),
      accept: "application/json, text/event-stream, */*",
      ...headersOf(texts(options.header)),
      "x-service-authorization": `Bearer ${await target.bearer()}`,
      "x-service-workspace": target.workspace,
    },
    ...(body === null ? {} : { body: body.content, duplex: "half" }),
  } as RequestInit).catch((error: unknown) => {
    throw new ApiError({ status: 0, code: "unreachable", message: `${target.url} does not answer.`, cause: error });
  });
  if (options.include === true) {
    context.note(`HTTP ${response.status}`);
    for (const [key, value] of response.headers) context.note(`${key}: ${value}`);
  }
  const out = response.ok ? process.stdout : process.stderr;
  await writeAnswer(response.body ?? [], out, !response.ok || out.isTTY);
  if (response.ok) return EXIT.ok;
  context.note(`it answered ${response.status}`);
  return EXIT.failure;
}

/** Starts the tasks of a job and prints the id of the execution. With --wait, its outcome is the exit code. */
export async function runJob(nouns: readonly Noun[], name: string, call: Invocation): Promise<number> {
  const body = await bodyOf(call);
  const given =
    body === null ? {} : parsed(await new Response(body.content, { duplex: "half" } as ResponseInit).text());
  const noun = findNoun(nouns, "job-execution");
  const [create, get] = [operationOf(noun, "create"), operationOf(noun, "get")];
  const params = { [create.params[0] ?? ""]: name };
  const tasks = Array.isArray(given) ? { tasks: given } : { tasks: [{}], ...given };
  const client = connect(call);
  const id = String(memberAt(await client.call(create, { params, body: tasks }), "executionId"));
  call.context.print(id);
  if (call.options.wait !== true) return EXIT.ok;
  const lines = [
    `The execution goes on. Look with \`berth get ${noun.name} ${name}/${id}\`, read with \`berth logs job/${name} --execution ${id}\``,
    `or end it with \`berth delete ${noun.name} ${name}/${id}\`.`,
  ];
  return tellWhenInterrupted(lines, call.context, () =>
    waitForExecution(get, { ...params, [get.params.at(-1) ?? ""]: id }, client, call.context),
  );
}

async function addressOf(noun: Noun, name: string, call: Invocation) {
  const { options, context } = call;
  const { url, bearer } = resolveConnection(
    { url: text(options.url), workspace: text(options.workspace), profile: text(options.profile) },
    context.env,
  );
  const get = operationOf(noun, "get");
  const resource = await connect(call).call(get, { params: { [get.params.at(-1) ?? ""]: name } });
  const workspace = String(memberAt(resource, "metadata.workspace"));
  const plural = noun.kind?.plural ?? noun.plural;
  return { url: `${url}/${encodeURIComponent(workspace)}/${plural}/${encodeURIComponent(name)}`, bearer, workspace };
}

interface Body {
  content: string | ReadableStream;
  type: string;
}

/** A file is streamed, whatever its size. */
async function bodyOf({ options, context }: Invocation): Promise<Body | null> {
  const [data, file] = [text(options.data), text(options.file)];
  if (data !== undefined && file !== undefined) throw new UsageError("--data and --file say the same thing twice.");
  if (data !== undefined) return { content: data, type: typeOf(data) };
  if (file === undefined) return null;
  if (file === "-") {
    const content = await context.readStdin();
    return { content, type: typeOf(content) };
  }
  if (!existsSync(file)) throw new UsageError(`${file} does not exist.`);
  const type = file.endsWith(".json") ? "application/json" : "application/octet-stream";
  return { content: Readable.toWeb(createReadStream(file)) as ReadableStream, type };
}

const typeOf = (content: string): string => (isJson(content) ? "application/json" : "text/plain; charset=utf-8");

function isJson(content: string): boolean {
  try {
    JSON.parse(content);
    return true;
  } catch {
    return false;
  }
}

function parsed(content: string): unknown[] | Record<string, unknown> {
  if (!isJson(content)) throw new UsageError("the tasks are not JSON.", `write '{"tasks":[{"name":"a"}]}'`);
  return JSON.parse(content) as unknown[] | Record<string, unknown>;
}

function headersOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) throw new UsageError(`'${line}' is not a header.`, "write it as NAME: VALUE");
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}
