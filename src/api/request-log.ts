/** What is told of management requests: a line and a measured time for each, and more where one failed unexpectedly. */
import type { Registry } from "prom-client";
import { PlatformError } from "../contract/errors.ts";
import type { Log } from "../kinds/port.ts";
import { type ErrorResponse, errorResponse } from "./error-response.ts";
import { createRequestTimes } from "./request-times.ts";

export interface LoggedAnswer {
  requestId: string;
  operation: string;
  status: number;
  ms: number;
  ip: string;
}

export type RequestLog = ReturnType<typeof createRequestLog>;

export function createRequestLog(registry: Registry, log: Log) {
  const times = createRequestTimes(registry);
  return {
    answered({ requestId, operation, status, ms, ip }: LoggedAnswer): void {
      times.observe(operation, status, ms / 1000);
      log.info({ requestId, operation, status, ms: Math.round(ms * 100) / 100, ip }, "answered");
    },

    /** The answer to a request that failed. */
    refusal(error: unknown, request: { requestId: string; method: string; route: string | undefined }): ErrorResponse {
      const response = errorResponse(error);
      if (response.unexpected) {
        const detail = error instanceof PlatformError ? error.detail : undefined;
        log.error({ err: error, detail, ...request }, "request failed");
      }
      return response;
    },
  };
}
