/** The whole body of a small request, for what is not streamed on. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { ClientGone } from "./hold.ts";

/** `onGone` also tells of a client that leaves after its body has come. */
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
