/** A stored request on its way to the node of its workload, and the answer on its way back. */
import { GATEWAY_ERRORS, GatewayError, type GatewayErrorCode } from "../contract/gateway-errors.ts";
import type { Replay, Replayed } from "./deps.ts";

export type WiredReplay = Omit<Replay, "signal">;

export interface WiredAnswer {
  status: number;
  /** base64 */
  body: string;
  length: number;
  error: { code: string; message: string } | null;
}

export const toWire = ({ status, body, length, error }: Replayed): WiredAnswer => ({
  ...{ status, length },
  body: body.toString("base64"),
  error: error && { code: error.code, message: error.message },
});

export function fromWire({ status, body, length, error }: WiredAnswer): Replayed {
  return {
    ...{ status, length },
    body: Buffer.from(body, "base64"),
    error: error && new GatewayError(codeOf(error.code), error.message),
  };
}

/** A newer server may know codes that this one does not. */
const codeOf = (code: string): GatewayErrorCode =>
  Object.hasOwn(GATEWAY_ERRORS, code) ? (code as GatewayErrorCode) : "INTERNAL_ERROR";
