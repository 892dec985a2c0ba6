/** Both sides of the proof that begins a connection between a server and the daemon of a workload; see `wire.ts`. */
import type { Socket } from "node:net";
import { LineReader } from "./line-reader.ts";
import {
  claimIn,
  errLine,
  GATE_LINE_BYTES_MAX,
  GATE_WAIT_MS,
  helloLine,
  isProven,
  newNonce,
  nonceIn,
  okLine,
  purposeLine,
  refusalIn,
} from "./wire.ts";

export interface GateCall {
  token: string;
  /** One word. */
  purpose: string;
}

/** Resolves with the bytes that came behind the answer; rejects with the reason, and leaves the socket to the caller. */
export async function enterGate(socket: Socket, { token, purpose }: GateCall): Promise<Buffer> {
  const lines = new LineReader(socket, GATE_LINE_BYTES_MAX, GATE_WAIT_MS);
  try {
    const hello = nonceIn((await lines.next()) ?? "");
    if (hello === null) throw new Error("nothing speaks for the workload there");
    const own = newNonce();
    socket.write(purposeLine(token, purpose, hello, own));
    const answer = await lines.next();
    if (answer === null) throw new Error("the connection was refused");
    const refusal = refusalIn(answer, token, purpose, hello, own);
    if (refusal !== null) throw new Error(refusal);
  } catch (error) {
    lines.release();
    throw error;
  }
  return lines.release();
}

export interface Entered {
  purpose: string;
  /** Bytes that came behind the last line. */
  rest: Buffer;
  accept(): void;
  /** Ends the connection with a reason. */
  refuse(reason: string): void;
}

/** Null: the other side has proven nothing, and the caller hangs up. `tokenOf` answers null for an unknown purpose. */
export async function openGate(socket: Socket, tokenOf: (purpose: string) => string | null): Promise<Entered | null> {
  const lines = new LineReader(socket, GATE_LINE_BYTES_MAX, GATE_WAIT_MS);
  const hello = newNonce();
  socket.write(helloLine(hello));
  const claim = claimIn((await lines.next()) ?? "");
  const rest = lines.release();
  const token = claim && tokenOf(claim.purpose);
  if (claim === null || token === null || !isProven(token, claim, hello)) return null;
  return {
    purpose: claim.purpose,
    rest,
    accept: () => void socket.write(okLine(token, claim, hello)),
    refuse: (reason) => void socket.end(errLine(reason)),
  };
}
