/**
 * A request of the platform to a function on behalf of a client, within this process: with the client's credentials and
 * address, on the way of every other request. Its answer is a stream that is read only as fast as its reader takes it.
 */
import { Readable } from "node:stream";
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { Downstream } from "../../http/downstream.ts";
import { fieldOf } from "../../http/fields.ts";
import { HeldRequest } from "../../http/held-request.ts";
import { requestIdOf } from "../../http/request-id.ts";
import type { CallOrigin, ServeContext } from "../call.ts";
import { findCredential } from "../credentials.ts";

export interface Member {
  context: ServeContext;
  /** The client's request. */
  down: Downstream;
  workspace: string;
  name: string;
  origin: Exclude<CallOrigin, "client">;
}

export interface MemberAnswer {
  status: number;
  field(name: string): string | undefined;
  body: Readable;
}

export interface Asked {
  method: "POST" | "GET" | "DELETE";
  headers: Record<string, string>;
  /** Empty for none. */
  body: string;
}

export function askMember(member: Member, asked: Asked, signal: AbortSignal): Promise<MemberAnswer> {
  signal.throwIfAborted();
  const { context, workspace, name, origin } = member;
  const request = new MemberRequest(member, asked);
  const leave = (): void => request.leave(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  request.over.then(() => signal.removeEventListener("abort", leave));
  const prefix = `/${workspace}/functions/${name}`;
  const route = { to: "workload", kind: "function", workspace, name, prefix, path: "/mcp" } as const;
  void context.within(request, route, origin);
  return request.answer;
}

const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

class MemberRequest extends HeldRequest {
  readonly answer: Promise<MemberAnswer>;
  readonly over: Promise<void>;
  readonly #answered = Promise.withResolvers<MemberAnswer>();
  readonly #over = Promise.withResolvers<void>();
  readonly #stream: Readable;
  #isOver = false;

  constructor(member: Member, asked: Asked) {
    const { down, workspace, name } = member;
    const body = asked.body === "" ? null : Buffer.from(asked.body);
    super({
      method: asked.method,
      url: `/${workspace}/functions/${name}/mcp`,
      rawHeaders: fieldsOf(member, asked.headers, body),
      ...{ body, origin: down },
    });
    this.answer = this.#answered.promise;
    this.over = this.#over.promise;
    this.#stream = new Readable({
      read: () => this.events?.onClientDrain(),
      destroy: (error, done) => {
        this.leave(error ?? new Error("the answer is not read to its end"));
        done(error);
      },
    });
    this.#stream.on("error", () => {}); // the reader is told by its own read
  }

  head(status: number, _reason: string, headers: string[]): void {
    this.#answered.resolve({ status, field: (name) => fieldOf(headers, name), body: this.#stream });
  }
  write(chunk: Buffer): boolean {
    // The parser uses its buffer again.
    return this.#isOver || this.#stream.push(Buffer.from(chunk));
  }
  end(): void {
    this.#finish();
    this.#stream.push(null);
  }
  destroy(): void {
    this.#finish();
    const error = new Error("the server's answer broke off");
    this.#answered.reject(error);
    this.#stream.destroy(error);
  }

  /** Nobody waits for the answer any more. */
  leave(reason: unknown): void {
    if (this.#isOver) return;
    this.#finish();
    this.#answered.reject(reason);
    this.#stream.destroy();
    this.events?.onClientGone();
  }

  #finish(): void {
    this.#isOver = true;
    this.#over.resolve();
  }
}

/** The parts come from clients and servers, and the request may be written to another node as it is. */
function fieldsOf({ context, down }: Member, headers: Record<string, string>, body: Buffer | null): string[] {
  const credential = findCredential(context.names, down, down.url);
  const fields: [string, string][] = [["Host", down.host ?? "localhost"], ...Object.entries(headers)];
  if (credential !== null) fields.push([context.names.branded[0] ?? "", `Bearer ${credential.token}`]);
  if (body !== null) fields.push(["Content-Type", "application/json"], ["Content-Length", String(body.length)]);
  fields.push(["X-Request-Id", requestIdOf(down)]);
  if (fields.some(([, value]) => !FIELD_VALUE.test(value)))
    throw new GatewayError("BAD_REQUEST", "A header of the request cannot be written.");
  return fields.flat();
}
