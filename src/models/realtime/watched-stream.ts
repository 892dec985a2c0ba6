/**
 * The provider's end of a realtime session, as the client's end is joined to it: bytes pass unchanged both ways, and
 * every event of the provider is shown to the ledger before the client gets it. When the ledger refuses, the client is
 * told in an event and a close frame, and the provider's connection is cut.
 */
import { Duplex } from "node:stream";
import type { GatewayError } from "../../contract/gateway-errors.ts";
import { closeFrame, FrameReader, type Piece, textFrame } from "./frames.ts";
import type { ResponseLedger } from "./response-ledger.ts";

/** Close codes of WebSockets: a policy is violated; the peer broke the protocol. */
const POLICY = 1008;
const PROTOCOL = 1002;
/** Bytes of a reason that fit into a close frame, if every character takes three. */
const REASON_CHARACTERS_MAX = 40;

export class WatchedStream extends Duplex {
  readonly #provider: Duplex;
  readonly #ledger: ResponseLedger;
  readonly #reader = new FrameReader();
  #pieces: Piece[] = [];
  #isDeciding = false;
  #hasEnded = false;
  #isCut = false;

  constructor(provider: Duplex, ledger: ResponseLedger) {
    super();
    this.#provider = provider;
    this.#ledger = ledger;
    provider.on("data", (chunk: Buffer) => this.receive(chunk));
    provider.on("end", () => {
      this.#hasEnded = true;
      this.#passOn();
    });
    provider.on("error", (error) => this.destroy(error));
    provider.on("close", () => {
      if (!this.#hasEnded && !this.#isCut) this.destroy();
    });
    this.once("close", () => ledger.end());
  }

  receive(chunk: Buffer): void {
    if (this.#isCut) return;
    try {
      this.#pieces.push(...this.#reader.push(chunk));
    } catch {
      this.#cut([closeFrame(PROTOCOL, "The provider broke the protocol.")]);
      return;
    }
    this.#passOn();
  }

  override _read(): void {
    if (!this.#isDeciding) this.#provider.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#isCut) {
      done();
      return;
    }
    this.#ledger.sent(chunk.length);
    // What was still to be written when the session was cut is no failure.
    this.#provider.write(chunk, (error) => done(this.#isCut ? null : error));
  }

  override _final(done: () => void): void {
    if (this.#isCut) done();
    else this.#provider.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#provider.destroy();
    done(error);
  }

  /** What nobody expected ends this session, and not the process. */
  #passOn(): void {
    this.#pass().catch((error: Error) => this.destroy(error));
  }

  /** Pieces pass in their order: those behind an event that needs a decision wait for it. */
  async #pass(): Promise<void> {
    if (this.#isDeciding) return;
    for (let piece = this.#pieces.shift(); piece; piece = this.#pieces.shift()) {
      const decision = piece.text === null ? null : this.#ledger.observe(parse(piece.text));
      let refusal: GatewayError | null = null;
      if (decision !== null) {
        this.#isDeciding = true;
        this.#provider.pause();
        refusal = await decision;
        this.#isDeciding = false;
      }
      if (this.destroyed || this.#isCut) return;
      const takesMore = this.push(piece.bytes);
      if (refusal) return this.#cut(refusalFrames(refusal));
      if (!takesMore) this.#provider.pause();
      else if (decision !== null) this.#provider.resume();
    }
    if (this.#hasEnded) this.push(null);
  }

  #cut(last: Buffer[]): void {
    this.#isCut = true;
    this.#pieces = [];
    this.#provider.destroy();
    for (const frame of last) this.push(frame);
    this.push(null);
    this.#ledger.end();
  }
}

function refusalFrames({ code, message }: GatewayError): Buffer[] {
  const error = { type: "platform_error", code, message, param: null, event_id: null };
  const event = { type: "error", event_id: `event_${code.toLowerCase()}`, error };
  return [textFrame(JSON.stringify(event)), closeFrame(POLICY, message.slice(0, REASON_CHARACTERS_MAX))];
}

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString("utf8"));
  } catch {
    return null;
  }
}
