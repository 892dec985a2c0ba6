/**
 * One client of a terminal session, and how much output it still has to take. A client that says so in its request
 * (`flow=ack`) acknowledges what it has shown; of all of them the daemon knows what waits in their socket.
 */
import type { WebSocketConnection } from "../http/websocket.ts";

/** Output sent ahead of what the client has shown, in characters: what is still shown after Ctrl-C. */
export const WINDOW_CHARS = 64 * 1024;
/** What waits in the socket of a client, which is all that is known of one without acknowledgements. Proxies on the way hold some output of their own. */
const SOCKET_BYTES_MAX = 256 * 1024;

export class Viewer {
  readonly #client: WebSocketConnection;
  readonly #acknowledges: boolean;
  readonly #onRoom: (viewer: Viewer) => void;
  #unshownChars = 0;
  #isFull = false;
  #followsSocket = false;
  /** Gets no output until it has room again; then its screen is drawn anew. */
  isBehind = false;

  constructor(client: WebSocketConnection, acknowledges: boolean, onRoom: (viewer: Viewer) => void) {
    this.#client = client;
    this.#acknowledges = acknowledges;
    this.#onRoom = onRoom;
    if (acknowledges) client.send(JSON.stringify({ type: "window", chars: WINDOW_CHARS }));
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** `message` is the frame that carries `chars` characters of output. */
  send(message: string, chars: number): void {
    this.#client.send(message);
    if (this.#acknowledges) this.#unshownChars += chars;
    this.#followSocket();
    if (this.#isOverLimit()) this.#isFull = true;
  }

  acknowledge(chars: number): void {
    if (!(chars > 0)) return;
    this.#unshownChars = Math.max(0, this.#unshownChars - chars);
    this.#look();
  }

  close(): void {
    this.#client.close(1000);
  }

  #followSocket(): void {
    if (this.#followsSocket || this.#client.waiting <= SOCKET_BYTES_MAX) return;
    this.#followsSocket = true;
    this.#client.onDrain(() => {
      this.#followsSocket = false;
      this.#followSocket(); // a part may have gone, and more have come since
      this.#look();
    });
  }

  #look(): void {
    if (!this.#isFull || this.#isOverLimit()) return;
    this.#isFull = false;
    this.#onRoom(this);
  }

  #isOverLimit(): boolean {
    // What a client acknowledges without reading it waits in its socket all the same.
    return this.#unshownChars >= WINDOW_CHARS || this.#client.waiting > SOCKET_BYTES_MAX;
  }
}
