/**
 * Serves plain requests straight from the socket, without Node's request and response objects, which
 * cost more than all of the gateway's own work. It reads only what `readPlainHead` understands; the first request that
 * is anything else, or belongs to a room that wants Node's objects, hands the whole connection over to Node's HTTP
 * server with nothing consumed. So the lane adds speed and no behaviour.
 *
 * A connection's modes: waiting -> serving -> waiting ..., or draining a body nobody wants, or handed over, or closed.
 */
import type { Socket } from "node:net";
import type { Sweepable, Sweeper } from "../lib/sweeper.ts";
import { LINGER_BYTES_MAX, LINGER_MS, THIS_MACHINE } from "./downstream.ts";
import { type PlainHead, readPlainHead } from "./http1/request-head.ts";
import { LaneRequest } from "./lane-request.ts";
import { isFromServer, isPeer, takePeerField, workloadOf } from "./peer-field.ts";
import { isProxied } from "./proxied.ts";
import type { Route } from "./route.ts";
import { cutWhenStalled, isUnread } from "./stalled.ts";

export interface LaneOptions {
  sweeper: Sweeper;
  route(target: string, host: string): Route;
  /** The function that serves a request with this head and route; null leaves the request to Node's server. */
  serverOf(head: PlainHead, route: Route): ((request: LaneRequest) => void) | null;
  /** Time limit of the first request's head. */
  headMs: number;
  /** Called when a connection has sent a complete request. */
  arrived(socket: Socket): void;
  /** False once the server is closing: connections end with their current response. */
  accepting(): boolean;
}

/** A head that does not arrive in one packet is left to Node, which has a timer for it. */
const HEAD_END = "\r\n\r\n";
/** Bytes of a head that is cached for the life of a connection. */
const REPEATED_LENGTH_MAX = 2048;
/** Idle timeout: longer than the 60 s of load balancers, so that the balancer closes first. */
const IDLE_MS = 75_000;

export class LaneConnection implements Sweepable {
  readonly socket: Socket;
  readonly remoteAddress: string;
  readonly fromNetwork: boolean;
  readonly workload: string | undefined;
  readonly secure: boolean;
  readonly fromServer: boolean;
  /** Whether requests of this connection describe their clients. */
  readonly #isPeer: boolean;
  readonly #options: LaneOptions;
  readonly #handOver: (socket: Socket) => void;
  #request: LaneRequest | null = null;
  #last: { text: string; head: PlainHead } | null = null;
  /** Bytes behind the current request. */
  #pending: Buffer | null = null;
  #bodyLeft = 0;
  /** Bytes of a discarded body read so far; null when no body is being discarded. */
  #drained: number | null = null;
  #sinceMs: number;
  #isNew = true;
  #reading = true;
  /** True while the last answer is not taken, and the next request waits for that. */
  #unread = false;
  #left = false;

  constructor(socket: Socket, options: LaneOptions, handOver: (socket: Socket) => void) {
    this.socket = socket;
    this.remoteAddress = socket.remoteAddress ?? THIS_MACHINE;
    this.fromNetwork = socket.remoteAddress !== undefined;
    this.workload = workloadOf(socket);
    this.secure = "encrypted" in socket && socket.encrypted === true;
    this.#isPeer = isPeer(socket);
    this.fromServer = isFromServer(socket);
    this.#options = options;
    this.#handOver = handOver;
    this.#sinceMs = options.sweeper.now;
    options.sweeper.add(this);
    socket.setNoDelay(true);
    socket.on("data", this.#onData);
    socket.on("drain", this.#onDrain);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
    socket.on("error", ignore);
  }

  sweep(nowMs: number): void {
    const isWaiting = (this.#request === null && !isUnread(this.socket)) || this.#drained !== null;
    if (isWaiting && nowMs - this.#sinceMs > this.#waitMs()) this.socket.destroy();
  }

  #waitMs(): number {
    if (this.#drained !== null) return LINGER_MS;
    return this.#isNew ? this.#options.headMs : IDLE_MS;
  }

  /** Closes after the written data has been sent. */
  close(): void {
    this.socket.destroySoon();
    setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
  }

  closeIfIdle(): void {
    if (this.#request === null && this.#drained === null) this.socket.destroy();
  }

  /** Releases the socket from the lane; null while a request is in flight or when it cannot be moved. */
  giveUpIfIdle(): Socket | null {
    const isIdle = this.#request === null && this.#drained === null && this.#pending === null && !this.#unread;
    if (
      !isIdle ||
      this.secure ||
      !this.fromNetwork ||
      isProxied(this.socket) ||
      this.socket.destroyed ||
      this.socket.writableEnded
    )
      return null;
    this.#detach();
    return this.socket;
  }

  get accepting(): boolean {
    return this.#options.accepting();
  }

  pauseBody(): void {
    this.#stopReading();
  }

  resumeBody(): void {
    if (this.#bodyLeft > 0) this.#startReading();
  }

  /** Called by the request when its response is complete. */
  finished(keepAlive: boolean): void {
    this.#request = null;
    this.#sinceMs = this.#options.sweeper.now;
    cutWhenStalled(this.socket);
    if (!keepAlive && this.#bodyLeft === 0) {
      this.socket.destroySoon();
      return;
    }
    // A client that is cut off while sending may never read the response, so the rest is read and discarded.
    if (this.#bodyLeft > 0) this.#drained = 0;
    if (!keepAlive) this.socket.end();
    // The next request of a pipeline waits until this answer is taken.
    this.#unread = this.socket.writableNeedDrain && this.#drained === null;
    if (this.#unread) this.#stopReading();
    else this.#next();
  }

  #next(): void {
    const pending = this.#pending;
    this.#pending = null;
    // In a new event loop turn, so that a long pipeline does not become a deep stack.
    if (pending !== null) setImmediate(() => this.#resumeWith(pending));
    else this.#startReading();
  }

  #resumeWith(pending: Buffer): void {
    if (this.socket.destroyed) return;
    this.#startReading();
    this.#onData(pending);
  }

  #onData = (chunk: Buffer): void => {
    if (this.#drained !== null) this.#drain(chunk);
    else if (this.#request === null) this.#begin(chunk);
    else if (this.#bodyLeft > 0) this.#passBody(this.#request, chunk);
    else this.#keep(chunk);
  };

  #begin(chunk: Buffer): void {
    const end = chunk.indexOf(HEAD_END, 0, "latin1");
    const head = end < 0 ? null : this.#headOf(chunk.toString("latin1", 0, end));
    const serve = head && this.#options.serverOf(head, this.#options.route(head.target, head.host));
    if (head === null || serve === null) this.#leave(chunk);
    else this.#serve(head, serve, chunk.subarray(end + HEAD_END.length));
  }

  /** Most clients repeat the same head on a connection, so the last parsed one is cached. */
  #headOf(text: string): PlainHead | null {
    const last = this.#last;
    if (last?.text === text) {
      last.head.isRepeated = true;
      return last.head;
    }
    const plain = readPlainHead(text);
    const head = plain !== null && this.#isPeer ? handedOn(plain) : plain;
    this.#last = head && text.length <= REPEATED_LENGTH_MAX ? { text, head } : null;
    return head;
  }

  #serve(head: PlainHead, serve: (request: LaneRequest) => void, rest: Buffer): void {
    if (this.#isNew) this.#options.arrived(this.socket);
    this.#isNew = false;
    const length = head.contentLength ?? 0;
    const body = rest.length > length ? rest.subarray(0, length) : rest;
    this.#bodyLeft = length - body.length;
    const request = new LaneRequest(this, head, body);
    this.#request = request;
    if (rest.length > length) this.#keep(rest.subarray(length));
    // The rest of the body waits in the socket until it is read.
    else if (this.#bodyLeft > 0) this.#stopReading();
    serve(request);
  }

  #passBody(request: LaneRequest, chunk: Buffer): void {
    const body = chunk.length > this.#bodyLeft ? chunk.subarray(0, this.#bodyLeft) : chunk;
    this.#bodyLeft -= body.length;
    if (chunk.length > body.length) this.#keep(chunk.subarray(body.length));
    request.onBody(body, this.#bodyLeft === 0);
  }

  #drain(chunk: Buffer): void {
    const body = Math.min(chunk.length, this.#bodyLeft);
    this.#bodyLeft -= body;
    this.#drained = (this.#drained ?? 0) + body;
    if (this.#drained > LINGER_BYTES_MAX) {
      this.socket.destroy();
      return;
    }
    if (this.#bodyLeft > 0) return;
    this.#drained = null;
    if (this.socket.writableEnded) this.socket.destroySoon();
    else if (chunk.length > body) this.#onData(chunk.subarray(body));
  }

  /** Keeps a pipelined request until the current one is answered. */
  #keep(chunk: Buffer): void {
    this.#pending = this.#pending === null ? chunk : Buffer.concat([this.#pending, chunk]);
    this.#stopReading();
  }

  #stopReading(): void {
    if (!this.#reading) return;
    this.#reading = false;
    this.socket.pause();
  }

  #startReading(): void {
    if (this.#reading) return;
    this.#reading = true;
    this.socket.resume();
  }

  #leave(chunk: Buffer): void {
    const { socket } = this;
    this.#detach();
    socket.pause();
    socket.unshift(chunk);
    this.#handOver(socket);
    socket.resume();
  }

  #detach(): void {
    const { socket } = this;
    this.#left = true;
    this.#options.sweeper.delete(this);
    socket.off("data", this.#onData);
    socket.off("drain", this.#onDrain);
    socket.off("end", this.#onEnd);
    socket.off("close", this.#onClose);
    socket.off("error", ignore);
  }

  #onDrain = (): void => {
    this.#request?.onDrain();
    if (!this.#unread) return;
    this.#unread = false;
    this.#sinceMs = this.#options.sweeper.now;
    this.#next();
  };

  #onEnd = (): void => {
    // Like Node's own server: a client that half-closes is treated as disconnected.
    this.socket.end();
    this.#onClose();
  };

  #onClose = (): void => {
    if (this.#left) return;
    this.#left = true;
    this.#options.sweeper.delete(this);
    const request = this.#request;
    this.#request = null;
    request?.onGone();
  };
}

/** Null for a request of the other server itself, and for one that describes no client: Node's server gets both. */
function handedOn(head: PlainHead): PlainHead | null {
  const request = takePeerField(head.rawHeaders, head.names);
  return request?.from === "client" ? { ...head, client: request.client } : null;
}

// A broken connection is reported by "close"; the error itself adds nothing.
const ignore = (): void => {};
