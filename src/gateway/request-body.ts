/** Reads the whole body of a small request that is not streamed. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { ClientGone } from "./hold.ts";

/** `onGone` is also called when the client disconnects after its body has arrived. */
export function readBody(down: Downstream, bytesMax: number, onGone: () => void = () => {}): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const tooLarge = (): void =>
      reject(new GatewayError("REQUEST_ENTITY_TOO_LARGE", `At most ${bytesMax} bytes are expected.`));
    down.attach({
      onRequestBody(chunk) {
        length += chunk.length;
        if (length <= bytesMax) chunks.push(chunk);
        else tooLarge();
      },
      onRequestEnd: () => resolve(Buffer.concat(chunks)),
      onClientDrain() {},
      onClientGone() {
        reject(new ClientGone());
        onGone();
      },
    });
    if (down.bodyFraming === "none") resolve(Buffer.alloc(0));
    else if (down.contentLength > bytesMax) tooLarge();
    else {
      down.sendContinue();
      down.readBody();
    }
  });
}
