/**
 * A request to an MCP server whose tools are checked: the body was read and checked before, and the answer's tool lists
 * pass a gate on their way to the client.
 */
import type { Downstream, DownstreamEvents } from "../../http/downstream.ts";
import { DressedRequest } from "../../http/dressed-request.ts";
import { fieldOf } from "../../http/fields.ts";
import { giveBody } from "../../http/held-request.ts";
import { lowerName } from "../../http/http1/header-name.ts";
import { headerText } from "./header-text.ts";
import { GatedEvents, gatedText, UncheckedAnswer } from "./listed-messages.ts";
import { MESSAGE_BYTES_MAX } from "./rpc-body.ts";
import type { ToolGate } from "./tool-gate.ts";

/** An encoded answer could not be read; the body's framing is that of the text that was checked. */
const DROPPED = new Set(["accept-encoding", "transfer-encoding", "content-length", "expect", "trailer"]);

type Answer = { status: number; reason: string; headers: string[] };

export class GatedRequest extends DressedRequest {
  readonly #body: Buffer | null;
  readonly #gate: ToolGate;
  #events: DownstreamEvents | null = null;
  /** Head of an answer that is gathered before it is sent; null while the answer is a stream or has none. */
  #answer: Answer | null = null;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  #stream: GatedEvents | null = null;
  #isBroken = false;

  /** `body` is null for a request without one; `name` is the value of Mcp-Name where the server has another than the client. */
  constructor(inner: Downstream, body: Buffer | null, gate: ToolGate, name: string | null = null) {
    const added = new Map<string, string>();
    if (body !== null) added.set("content-length", String(body.length));
    if (name !== null && inner.header("mcp-name") !== undefined) added.set("mcp-name", headerText(name));
    super(inner, added, DROPPED);
    this.#body = body;
    this.#gate = gate;
  }

  override get bodyFraming(): "none" | "length" {
    return this.#body === null ? "none" : "length";
  }
  override get contentLength(): number {
    return this.#body?.length ?? 0;
  }
  override get expectsContinue(): boolean {
    return false;
  }
  override attach(events: DownstreamEvents): void {
    this.#events = events;
    super.attach(events);
  }
  override readBody(): void {
    giveBody(this.#body, this.#events);
  }
  override pauseBody(): void {}
  override resumeBody(): void {}
  override sendContinue(): void {}

  override head(status: number, reason: string, headers: string[]): void {
    const isEncoded = !/^(identity)?$/i.test(fieldOf(headers, "content-encoding") ?? "");
    if (isEncoded) {
      this.#break();
      return;
    }
    if (/^text\/event-stream\b/i.test(fieldOf(headers, "content-type") ?? "")) {
      this.#stream = new GatedEvents(this.#gate);
      super.head(status, reason, without(headers, "content-length"));
    } else this.#answer = { status, reason, headers };
  }

  override write(chunk: Buffer): boolean {
    if (this.#isBroken) return true;
    if (this.#stream === null) {
      this.#gathered.push(Buffer.from(chunk));
      this.#gatheredBytes += chunk.length;
      if (this.#gatheredBytes > MESSAGE_BYTES_MAX) this.#break();
      return true;
    }
    try {
      const checked = this.#stream.push(chunk);
      return checked.length === 0 || super.write(checked);
    } catch (error) {
      if (!(error instanceof UncheckedAnswer)) throw error;
      this.#break();
      return true;
    }
  }

  override flush(): boolean {
    return this.#isBroken || this.#answer !== null || super.flush();
  }

  override end(trailers: string[]): void {
    if (this.#isBroken) return;
    const answer = this.#answer;
    this.#answer = null;
    try {
      if (answer !== null) this.#send(answer);
    } catch (error) {
      if (!(error instanceof UncheckedAnswer)) throw error;
      this.#break();
      return;
    }
    super.end(trailers);
  }

  /** Clients read the body as its type says, so the type is that of what was checked. */
  #send({ status, reason, headers }: Answer): void {
    const bytes = Buffer.concat(this.#gathered);
    if (bytes.length === 0) {
      super.head(status, reason, headers);
      return;
    }
    const checked = gatedText(this.#gate, bytes.toString("utf8"));
    const sent = checked === null ? bytes : Buffer.from(checked);
    const type = checked === null ? "text/plain; charset=utf-8" : "application/json";
    const kept = without(without(headers, "content-length"), "content-type");
    super.head(status, reason, [...kept, "Content-Type", type, "Content-Length", String(sent.length)]);
    super.write(sent);
  }

  /** The client must not take what it has for a whole answer, and the server need not go on. */
  #break(): void {
    this.#isBroken = true;
    this.#gathered = [];
    this.destroy();
    process.nextTick(() => this.#events?.onClientGone());
  }
}

const without = (headers: readonly string[], name: string): string[] =>
  headers.filter((_, i) => lowerName(headers[i - (i % 2)] as string) !== name);
