/** An answer of the API server that is a refusal. */
import { z } from "zod";

const statusSchema = z.object({
  message: z.string().optional(),
  reason: z.string().optional(),
  details: z.object({ retryAfterSeconds: z.number().optional() }).nullish(),
});

export class KubeRefusal extends Error {
  readonly status: number;
  /** The API server's own word: AlreadyExists, Conflict, NotFound, Expired, … */
  readonly reason: string;
  /** Undefined where the API server does not ask for another try. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, text: string, retryAfter: string | undefined) {
    const said = readStatus(text);
    super(said?.message ?? (text.slice(0, 500) || `status ${status}`));
    this.status = status;
    this.reason = said?.reason ?? "";
    const seconds = Number(retryAfter ?? said?.details?.retryAfterSeconds);
    const isBusy = status === 429 || status === 503 || (status === 500 && Number.isFinite(seconds));
    this.retryAfterMs = isBusy ? (Number.isFinite(seconds) ? seconds * 1000 : 0) : undefined;
  }
}

function readStatus(text: string): z.output<typeof statusSchema> | null {
  try {
    return statusSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

export const isRefusal = (error: unknown, ...statuses: number[]): error is KubeRefusal =>
  error instanceof KubeRefusal && statuses.includes(error.status);
