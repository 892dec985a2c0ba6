/**
 * Tasks of MCP servers, by who began them. A caller gets a task's id signed, together with the caller, the
 * function and the tool. So only that caller can ask for the task, every server of the platform can tell, and the rules
 * about the tool hold for its tasks. Nothing is stored for it.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { RPC, RpcError } from "../../lib/mcp/wire.ts";
import { isRecord, textOrNone } from "../../lib/untrusted-json.ts";
import type { Principal } from "../deps.ts";
import { KnownTasks } from "./known-tasks.ts";

export interface Task {
  /** As the server made it. */
  id: string;
  /** The tool that was called; null when the gateway has not seen the call. */
  tool: string | null;
  /** Name of the function behind a virtual server; "" elsewhere. */
  server: string;
}

/** Servers make up ids, and callers names of tools; a longer one is handed on as it is, and nobody can ask for the task. */
const ID_MAX_LENGTH = 1024;
const TOOL_MAX_LENGTH = 512;
const MAC_BYTES = 16;
const SIGNED = /^([\w-]{1,8192})\.([\w-]{22})$/;

export class TaskIds {
  readonly #key: Buffer;
  readonly #known = new KnownTasks();

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** The tasks of one caller at one function. */
  of(uid: string, principal: Principal | null): CallerTasks {
    return new CallerTasks(this.#key, this.#known, uid, principal);
  }
}

export class CallerTasks {
  readonly #key: Buffer;
  readonly #known: KnownTasks;
  readonly #uid: string;
  readonly #caller: string;
  readonly #isStranger: boolean;

  constructor(key: Buffer, known: KnownTasks, uid: string, principal: Principal | null) {
    this.#key = key;
    this.#known = known;
    this.#uid = uid;
    this.#isStranger = principal === null;
    this.#caller = JSON.stringify([uid, principal?.keyId ?? "", principal?.id ?? ""]);
  }

  /** The id as the caller gets it. */
  sign(id: string, tool: string | null, server: string): string {
    if (id.length > ID_MAX_LENGTH || (tool?.length ?? 0) > TOOL_MAX_LENGTH) return id;
    const place = this.#place(id, server);
    const own = tool ?? this.#known.toolOf(this.#uid, place) ?? null;
    this.#known.remember(this.#uid, place, own);
    const payload = Buffer.from(JSON.stringify([id, own, server])).toString("base64url");
    return `${payload}.${this.#mac(payload).toString("base64url")}`;
  }

  /** Throws for an id that this caller was not given here. */
  open(signed: unknown): Task {
    const [, payload = "", mac = ""] = typeof signed === "string" ? (SIGNED.exec(signed) ?? []) : [];
    const given = Buffer.from(mac, "base64url");
    if (given.length !== MAC_BYTES || !timingSafeEqual(given, this.#mac(payload))) throw unknownTask(signed);
    const [id, tool, server] = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
    return { id, tool, server };
  }

  /**
   * Whether this caller began a task with this id of the server, as far as is remembered. Callers without credentials
   * cannot be told apart, so a list has nothing for them; the id that they were given opens their task.
   */
  isKnown(id: string, server: string): boolean {
    return !this.#isStranger && this.#known.toolOf(this.#uid, this.#place(id, server)) !== undefined;
  }

  #place(id: string, server: string): string {
    return JSON.stringify([this.#caller, server, id]);
  }

  #mac(payload: string): Buffer {
    const mac = createHmac("sha256", this.#key).update(`${this.#caller}\n${payload}`).digest();
    return mac.subarray(0, MAC_BYTES);
  }
}

const unknownTask = (id: unknown): RpcError =>
  new RpcError(RPC.invalidParams, `There is no task ${JSON.stringify(id)?.slice(0, 140)}.`);

/** Methods about one task, of both generations of the protocol. */
export const TASK_METHODS: ReadonlySet<unknown> = new Set([
  ...["tasks/get", "tasks/result", "tasks/update", "tasks/cancel"],
]);

/** The member of `_meta` that says which task a message belongs to, in the handshake versions. */
const RELATED = "io.modelcontextprotocol/related-task";

/** How the ids in a message become others. */
type Renamed = (id: string) => string;

/** A message of a server as the caller gets it; the same object when it names no task. */
export function signedMessage<M extends object>(message: M, tasks: CallerTasks, tool: string | null, server = ""): M {
  const rename: Renamed = (id) => tasks.sign(id, tool, server);
  const { method, params, result } = message as Record<string, unknown>;
  if (isRecord(result)) return changed(message, "result", signedResult(result, rename, tasks, server));
  if (!isRecord(params)) return message;
  const isTold = typeof method === "string" && method.startsWith("notifications/tasks");
  return changed(message, "params", renamed(isTold ? withId(params, rename) : params, rename));
}

function signedResult(
  result: Record<string, unknown>,
  rename: Renamed,
  tasks: CallerTasks,
  server: string,
): Record<string, unknown> {
  const whole = renamed(withId(result, rename), rename);
  if (isRecord(whole.task)) return changed(whole, "task", withId(whole.task, rename));
  if (!Array.isArray(whole.tasks)) return whole;
  const own = whole.tasks.flatMap((task: unknown) =>
    isRecord(task) && tasks.isKnown(textOrNone(task.taskId), server) ? [withId(task, rename)] : [],
  );
  return { ...whole, tasks: own };
}

/** A message of a caller as the server gets it. */
export function openedMessage<M extends object>(message: M, tasks: CallerTasks): M {
  const rename: Renamed = (id) => tasks.open(id).id;
  const { method, params, result } = message as Record<string, unknown>;
  if (isRecord(result)) return changed(message, "result", renamed(result, rename));
  if (!isRecord(params)) return message;
  return changed(message, "params", renamed(TASK_METHODS.has(method) ? withId(params, rename) : params, rename));
}

const withId = (of: Record<string, unknown>, rename: Renamed): Record<string, unknown> =>
  typeof of.taskId === "string" ? { ...of, taskId: rename(of.taskId) } : of;

function renamed(of: Record<string, unknown>, rename: Renamed): Record<string, unknown> {
  const related = isRecord(of._meta) ? of._meta[RELATED] : undefined;
  return isRecord(related) ? { ...of, _meta: { ...(of._meta as object), [RELATED]: withId(related, rename) } } : of;
}

const changed = <M extends object>(message: M, member: string, value: Record<string, unknown>): M =>
  (message as Record<string, unknown>)[member] === value ? message : { ...message, [member]: value };
