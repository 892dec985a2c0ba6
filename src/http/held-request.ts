/** A request of the platform itself, with its body in memory: it takes the way of a client's request. */
import type { Downstream, DownstreamEvents } from "./downstream.ts";
import { THIS_MACHINE } from "./downstream.ts";
import { fieldOf } from "./fields.ts";

/** On whose behalf the request is made. */
export type HeldOrigin = Pick<Downstream, "host" | "remoteAddress" | "fromNetwork" | "workload" | "secure">;

const PLATFORM: HeldOrigin = {
  host: undefined,
  remoteAddress: THIS_MACHINE,
  fromNetwork: true,
  workload: undefined,
  secure: false,
};

export interface Held {
  method: string;
  url?: string;
  rawHeaders?: readonly string[];
  /** Null for none. */
  body: Buffer | null;
  origin?: HeldOrigin;
}

export abstract class HeldRequest implements Downstream {
  readonly method: string;
  readonly url: string;
  readonly host: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly bodyFraming: "none" | "length";
  readonly contentLength: number;
  readonly expectsContinue = false;
  readonly remoteAddress: string;
  readonly fromNetwork: boolean;
  readonly workload: string | undefined;
  readonly secure: boolean;
  readonly handedOn = false;
  readonly upgrade = null;
  protected events: DownstreamEvents | null = null;
  readonly #body: Buffer | null;

  constructor({ method, url = "/", rawHeaders = [], body, origin = PLATFORM }: Held) {
    this.method = method;
    this.url = url;
    this.host = origin.host;
    this.rawHeaders = rawHeaders;
    this.bodyFraming = body === null ? "none" : "length";
    this.contentLength = body?.length ?? 0;
    this.remoteAddress = origin.remoteAddress;
    this.fromNetwork = origin.fromNetwork;
    this.workload = origin.workload;
    this.secure = origin.secure;
    this.#body = body;
  }

  header(name: string): string | undefined {
    return fieldOf(this.rawHeaders, name);
  }
  attach(events: DownstreamEvents): void {
    this.events = events;
  }
  readBody(): void {
    giveBody(this.#body, this.events);
  }
  pauseBody(): void {}
  resumeBody(): void {}
  sendContinue(): void {}
  sendInformational(): void {}
  flush(): boolean {
    return true;
  }
  switchProtocols(): never {
    throw new Error("a request of the platform switches no protocols");
  }

  abstract head(status: number, reason: string, headers: string[]): void;
  abstract write(chunk: Buffer): boolean;
  abstract end(): void;
  abstract destroy(): void;
}

/** Hands over a whole body at once. It is in memory, so there is no backpressure. */
export function giveBody(body: Buffer | null, events: DownstreamEvents | null): void {
  if (body !== null && body.length > 0) events?.onRequestBody(body);
  events?.onRequestEnd([]);
}
