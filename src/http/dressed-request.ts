/** A client's request with other header fields: everything else is the client's own. */
import type { Duplex } from "node:stream";
import type { Downstream, DownstreamEvents, Switching } from "./downstream.ts";
import { lowerName } from "./http1/header-name.ts";

export class DressedRequest implements Downstream {
  readonly #inner: Downstream;
  readonly #added: ReadonlyMap<string, string>;
  readonly #dropped: ReadonlySet<string>;
  readonly rawHeaders: readonly string[];

  /** Names in lower case. A field that is added takes the place of the client's. */
  constructor(inner: Downstream, added: ReadonlyMap<string, string>, dropped: ReadonlySet<string>) {
    this.#inner = inner;
    this.#added = added;
    this.#dropped = dropped;
    const fields: string[] = [];
    for (let i = 0; i < inner.rawHeaders.length; i += 2) {
      const name = inner.rawHeaders[i] as string;
      const lower = lowerName(name);
      if (!dropped.has(lower) && !added.has(lower)) fields.push(name, inner.rawHeaders[i + 1] as string);
    }
    for (const [name, value] of added) fields.push(name, value);
    this.rawHeaders = fields;
  }

  header(name: string): string | undefined {
    return this.#added.get(name) ?? (this.#dropped.has(name) ? undefined : this.#inner.header(name));
  }

  get method(): string {
    return this.#inner.method;
  }
  get url(): string {
    return this.#inner.url;
  }
  get host(): string | undefined {
    return this.#inner.host;
  }
  get bodyFraming(): "none" | "length" | "chunked" {
    return this.#inner.bodyFraming;
  }
  get contentLength(): number {
    return this.#inner.contentLength;
  }
  get expectsContinue(): boolean {
    return this.#inner.expectsContinue;
  }
  get remoteAddress(): string {
    return this.#inner.remoteAddress;
  }
  get workload(): string | undefined {
    return this.#inner.workload;
  }

  get fromNetwork(): boolean {
    return this.#inner.fromNetwork;
  }
  get secure(): boolean {
    return this.#inner.secure;
  }
  get handedOn(): boolean {
    return this.#inner.handedOn;
  }
  get upgrade(): string | null {
    return this.#inner.upgrade;
  }

  attach(events: DownstreamEvents): void {
    this.#inner.attach(events);
  }
  readBody(): void {
    this.#inner.readBody();
  }
  pauseBody(): void {
    this.#inner.pauseBody();
  }
  resumeBody(): void {
    this.#inner.resumeBody();
  }
  sendContinue(): void {
    this.#inner.sendContinue();
  }
  sendInformational(status: number, headers: string[]): void {
    this.#inner.sendInformational(status, headers);
  }
  head(status: number, reason: string, headers: string[]): void {
    this.#inner.head(status, reason, headers);
  }
  write(chunk: Buffer): boolean {
    return this.#inner.write(chunk);
  }
  flush(): boolean {
    return this.#inner.flush();
  }
  end(trailers: string[]): void {
    this.#inner.end(trailers);
  }
  destroy(): void {
    this.#inner.destroy();
  }
  switchProtocols(switching: Switching): { socket: Duplex; early: Buffer } {
    return this.#inner.switchProtocols(switching);
  }
}
