/** Answers a request to a sandbox's address on the platform's own authority. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { OwnEndpoint } from "./deps.ts";
import type { Downstream } from "./downstream.ts";
import type { HeaderRules } from "./header-rules.ts";
import { ClientGone } from "./hold.ts";
import { respond } from "./platform-response.ts";

/** These are small JSON objects. */
const BODY_BYTES_MAX = 64 * 1024;

/** As the daemon inside says it, so that clients cannot tell the difference. */
const HEADERS = [
  ["Access-Control-Allow-Origin", "*"],
  ["Cache-Control", "no-cache, no-store, must-revalidate"],
  ["X-Content-Type-Options", "nosniff"],
].flat();

export interface OwnOutcome {
  status: number;
  bytesIn: number;
  bytesOut: number;
}

export async function answerOwn(rules: HeaderRules, down: Downstream, endpoint: OwnEndpoint): Promise<OwnOutcome> {
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => {}); // a client that leaves while nobody waits for it is nobody's failure
  const sent = await readBody(down, () => gone.reject(new ClientGone()));
  const { status, body } = await Promise.race([endpoint(sent), gone.promise]);
  const text = JSON.stringify(body);
  respond(rules, down, status, "application/json", text, HEADERS, null);
  return { status, bytesIn: sent.length, bytesOut: Buffer.byteLength(text) };
}

function readBody(down: Downstream, onGone: () => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    down.attach({
      onRequestBody(chunk) {
        length += chunk.length;
        if (length <= BODY_BYTES_MAX) chunks.push(chunk);
        else reject(new GatewayError("REQUEST_ENTITY_TOO_LARGE", `At most ${BODY_BYTES_MAX} bytes are expected.`));
      },
      onRequestEnd: () => resolve(Buffer.concat(chunks)),
      onClientDrain() {},
      onClientGone() {
        reject(new ClientGone());
        onGone();
      },
    });
    if (down.bodyFraming === "none") {
      resolve(Buffer.alloc(0));
      return;
    }
    down.sendContinue();
    down.readBody();
  });
}
