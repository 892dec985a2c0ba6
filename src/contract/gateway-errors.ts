/**
 * Failures of the inference path. Every answer of the gateway itself, instead of the workload, has this one body: a
 * stable code, whether the same request may be retried, what to do next and what not to do, so that a program can act
 * on it without reading prose. The table is the contract. A code is never renamed and never changes its status.
 */
import { type ErrorCode, NodeUnavailable, PlatformError } from "./errors.ts";

/** The page that explains the codes. */
export const GATEWAY_DOCS_URL = "/docs/gateway";

export interface GatewayErrorRow {
  status: number;
  /** True when the very same request may succeed later without the caller changing anything. */
  retryable: boolean;
  message: string;
  action: string;
  doNot: string;
}

const RESEND = "Do not send the same request again; it will fail the same way.";
const HAMMER = "Do not retry in a tight loop.";
const REPLAY = "Do not replay a request that is not idempotent without checking whether it took effect.";

export const GATEWAY_ERRORS = {
  // Addressing
  ROUTE_NOT_FOUND: {
    status: 404,
    retryable: false,
    message: "This address belongs to no workload and no preview.",
    action: "Take the address from metadata.url of the resource, or from spec.url of the preview.",
    doNot: RESEND,
  },
  WORKLOAD_NOT_FOUND: {
    status: 404,
    retryable: false,
    message: "The workload does not exist.",
    action: "Check the name and the workspace, or create the workload.",
    doNot: RESEND,
  },
  WORKSPACE_NOT_FOUND: {
    status: 404,
    retryable: false,
    message: "The workspace does not exist.",
    action: "Check the workspace name in the address.",
    doNot: RESEND,
  },
  WORKLOAD_UNAVAILABLE: {
    status: 404,
    retryable: true,
    message: "The workload exists but has nothing running that could answer.",
    action: "Look at the status and events of the workload; retry once it is DEPLOYED.",
    doNot: HAMMER,
  },
  WORKLOAD_DISABLED: {
    status: 404,
    retryable: false,
    message: "The workload is switched off.",
    action: "Set spec.enabled to true and wait until it is DEPLOYED.",
    doNot: RESEND,
  },
  SESSION_NOT_FOUND: {
    status: 404,
    retryable: false,
    message: "The copy of the MCP server that held this session is gone.",
    action: "Start a new session: send initialize without Mcp-Session-Id.",
    doNot: RESEND,
  },
  // Rights
  AUTHENTICATION_REQUIRED: {
    status: 401,
    retryable: false,
    message: "Credentials are required.",
    action: "Send an API key or an access token as a bearer token.",
    doNot: "Do not retry without credentials.",
  },
  AUTHENTICATION_FAILED: {
    status: 401,
    retryable: false,
    message: "The credentials are not valid, or no longer valid.",
    action: "Refresh the token or create a new API key.",
    doNot: "Do not retry with the same credentials.",
  },
  FORBIDDEN: {
    status: 403,
    retryable: false,
    message: "These credentials are not allowed to use this workload.",
    action: "Ask an administrator of the workspace for access.",
    doNot: "Do not retry with the same credentials.",
  },
  USAGE_LIMIT_EXCEEDED: {
    status: 402,
    retryable: false,
    message: "The plan's usage limit is reached.",
    action: "Raise the limit of the account, or wait for the next billing period.",
    doNot: RESEND,
  },
  POLICY_VIOLATION: {
    status: 403,
    retryable: false,
    message: "A policy of the workload refuses this request.",
    action: "Read the policies named in the workload's spec.policies.",
    doNot: RESEND,
  },
  GUARDRAIL_UNAVAILABLE: {
    status: 503,
    retryable: true,
    message: "The webhook of the model's guardrails did not decide.",
    action: "Check that spec.guardrails.webhook.url answers in time; onFailure decides what happens when it does not.",
    doNot: HAMMER,
  },
  RATE_LIMITED: {
    status: 429,
    retryable: true,
    message: "Too many requests.",
    action: "Wait for the time given in Retry-After, then send the request again.",
    doNot: HAMMER,
  },
  TOKEN_LIMIT_EXCEEDED: {
    status: 429,
    retryable: true,
    message: "The token limit of a policy is used up for the current window.",
    action: "Wait for the time given in Retry-After, or raise the limit in the policy.",
    doNot: HAMMER,
  },
  // The request itself
  BAD_REQUEST: {
    status: 400,
    retryable: false,
    message: "The request is malformed.",
    action: "Correct the request.",
    doNot: RESEND,
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    retryable: false,
    message: "This method is not allowed here.",
    action: "Use one of the methods given in the Allow header.",
    doNot: RESEND,
  },
  REQUEST_TIMEOUT: {
    status: 408,
    retryable: true,
    message: "The request did not arrive completely in time.",
    action: "Send the whole request without pausing.",
    doNot: REPLAY,
  },
  REQUEST_ENTITY_TOO_LARGE: {
    status: 413,
    retryable: false,
    message: "The request body is larger than allowed here.",
    action: "Send a smaller body; upload large files in parts.",
    doNot: RESEND,
  },
  REQUEST_HEADERS_TOO_LARGE: {
    status: 431,
    retryable: false,
    message: "The request line and headers are larger than allowed.",
    action: "Send fewer or shorter headers.",
    doNot: RESEND,
  },
  // Start of the workload
  COLD_START_TIMEOUT: {
    status: 504,
    retryable: true,
    message: "The workload did not become ready in the time a request is held.",
    action: "Retry after a few seconds; if it persists, read the workload's logs and events.",
    doNot: HAMMER,
  },
  WORKLOAD_START_FAILED: {
    status: 503,
    retryable: true,
    message: "The workload could not be started.",
    action: "Read the workload's logs and events, correct the cause and deploy again.",
    doNot: HAMMER,
  },
  // The workload's answer
  WORKLOAD_NOT_LISTENING: {
    status: 502,
    retryable: true,
    message: "Nothing listens on the port this address leads to.",
    action: "Start the server inside the workload; let it listen on HOST and PORT.",
    doNot: HAMMER,
  },
  WORKLOAD_CONNECTION_CLOSED: {
    status: 502,
    retryable: true,
    message: "The workload closed the connection before it answered completely.",
    action: "Read the workload's logs: the process may have crashed or run out of memory.",
    doNot: REPLAY,
  },
  WORKLOAD_BAD_RESPONSE: {
    status: 502,
    retryable: false,
    message: "The workload's answer is not valid HTTP.",
    action: "Correct the server inside the workload.",
    doNot: REPLAY,
  },
  IDLE_TIMEOUT: {
    status: 504,
    retryable: true,
    message: "The workload sent no byte for longer than allowed.",
    action: "Stream partial output, or call the workload asynchronously.",
    doNot: REPLAY,
  },
  DURATION_EXCEEDED: {
    status: 504,
    retryable: false,
    message: "The request took longer than any request may take.",
    action: "Split the work, call the workload asynchronously, or use a batch job.",
    doNot: REPLAY,
  },
  // Model providers
  PROVIDER_UNAVAILABLE: {
    status: 502,
    retryable: true,
    message: "The model provider could not be reached, or failed.",
    action: "Retry with back-off; check the provider's own status.",
    doNot: HAMMER,
  },
  PROVIDER_TIMEOUT: {
    status: 504,
    retryable: true,
    message: "The model provider did not answer in time.",
    action: "Retry with back-off, or ask for a shorter answer.",
    doNot: HAMMER,
  },
  PROVIDER_CONNECT_TIMEOUT: {
    status: 504,
    retryable: true,
    message: "No connection to the model provider came about in time.",
    action: "Check the address in spec.config.baseUrl of the connection and the network; retry with back-off.",
    doNot: HAMMER,
  },
  PROVIDER_IDLE_TIMEOUT: {
    status: 504,
    retryable: true,
    message: "The model provider stopped sending in the middle of its answer.",
    action: "Retry with back-off, or ask for a shorter answer.",
    doNot: REPLAY,
  },
  PROVIDER_BAD_RESPONSE: {
    status: 502,
    retryable: true,
    message: "The model provider's answer could not be understood.",
    action: "Check that spec.config.baseUrl leads to the provider named in spec.runtime.type; retry once.",
    doNot: REPLAY,
  },
  PROVIDER_CERTIFICATE_REFUSED: {
    status: 502,
    retryable: false,
    message: "The model provider's certificate is not one this platform trusts for its address.",
    action:
      "Correct spec.config.baseUrl of the connection; for a certificate authority of your own start the platform with NODE_EXTRA_CA_CERTS.",
    doNot: RESEND,
  },
  PROVIDER_ADDRESS_REFUSED: {
    status: 400,
    retryable: false,
    message: "The address of the model provider is not one this platform may connect to.",
    action: "Use a public address, or let an administrator allow private addresses for connections.",
    doNot: RESEND,
  },
  PROVIDER_AUTHENTICATION_FAILED: {
    status: 502,
    retryable: false,
    message: "The model provider refused the credentials of the integration connection.",
    action: "Update the secret of the integration connection.",
    doNot: RESEND,
  },
  PROVIDER_NOT_CONFIGURED: {
    status: 400,
    retryable: false,
    message: "The model has no usable integration connection.",
    action: "Create an integration connection and name it in spec.integrationConnections.",
    doNot: RESEND,
  },
  // Several servers
  NODE_UNAVAILABLE: {
    status: 503,
    retryable: true,
    message: "The node that the workload is on does not answer.",
    action: "Wait until the node is back; `berth nodes list` shows when it was last heard of.",
    doNot: HAMMER,
  },
  NODE_CONNECTION_CLOSED: {
    status: 502,
    retryable: true,
    message: "The connection to the workload's node ended before the answer was complete.",
    action: "Send the request again in a moment.",
    doNot: REPLAY,
  },
  // The gateway
  OVERLOADED: {
    status: 503,
    retryable: true,
    message: "The gateway is at its limit of waiting requests.",
    action: "Wait for the time given in Retry-After, then send the request again.",
    doNot: HAMMER,
  },
  SHUTTING_DOWN: {
    status: 503,
    retryable: true,
    message: "The gateway is restarting.",
    action: "Send the request again in a moment.",
    doNot: HAMMER,
  },
  INTERNAL_ERROR: {
    status: 500,
    retryable: true,
    message: "The gateway failed.",
    action: "Retry once; if it persists, give the operator the X-Request-Id of this response.",
    doNot: HAMMER,
  },
} as const satisfies Record<string, GatewayErrorRow>;

export type GatewayErrorCode = keyof typeof GATEWAY_ERRORS;

export interface GatewayErrorOptions {
  cause?: unknown;
  /** For the log only. */
  detail?: Record<string, unknown>;
  /** Replaces the message for callers who may read the workload's logs. */
  insight?: string;
  /** Response headers that belong to the failure, such as Retry-After or WWW-Authenticate. */
  headers?: Record<string, string>;
  /** Only for POLICY_VIOLATION, whose status the policy decides. */
  status?: number;
  /** Replaces what the table says to do, where a cause of the same code has a place of its own. */
  action?: string;
}

export interface GatewayErrorBody {
  error: {
    action: string;
    code: GatewayErrorCode;
    do_not: string;
    docs_url: string;
    message: string;
    origin: "platform";
    retryable: boolean;
    status: number;
    timestamp: string;
  };
}

export class GatewayError extends Error {
  readonly code: GatewayErrorCode;
  readonly status: number;
  readonly detail: Record<string, unknown> | undefined;
  readonly insight: string | undefined;
  readonly action: string;
  readonly headers: Record<string, string> | undefined;

  /** Default message: the one in the table. */
  constructor(code: GatewayErrorCode, message?: string, options: GatewayErrorOptions = {}) {
    super(message ?? GATEWAY_ERRORS[code].message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "GatewayError";
    this.code = code;
    this.status = options.status ?? GATEWAY_ERRORS[code].status;
    this.detail = options.detail;
    this.insight = options.insight;
    this.action = options.action ?? GATEWAY_ERRORS[code].action;
    this.headers = options.headers;
  }

  /** This error as shown to a caller who may read the workload's logs. */
  opened(): GatewayError {
    const { code, status, action, detail, headers, insight } = this;
    return new GatewayError(code, insight, {
      status,
      action,
      cause: this.cause,
      ...(detail && { detail }),
      ...(headers && { headers }),
    });
  }

  /** `docsBase` is the address of the page that explains the codes; each code has an anchor there. */
  toWire(nowMs: number, docsBase: string): GatewayErrorBody {
    const row = GATEWAY_ERRORS[this.code];
    return {
      error: {
        action: this.action,
        code: this.code,
        do_not: row.doNot,
        docs_url: `${docsBase}#${this.code.toLowerCase()}`,
        message: this.message,
        origin: "platform",
        retryable: row.retryable,
        status: this.status,
        timestamp: new Date(nowMs).toISOString(),
      },
    };
  }
}

/** Maps error codes of the rooms behind the gateway to the gateway's own codes. */
const FROM_PLATFORM: Partial<Record<ErrorCode, GatewayErrorCode>> = {
  bad_request: "BAD_REQUEST",
  invalid_field: "BAD_REQUEST",
  invalid_parameter: "BAD_REQUEST",
  workspace_required: "BAD_REQUEST",
  unprocessable: "BAD_REQUEST",
  unauthenticated: "AUTHENTICATION_FAILED",
  usage_limit_exceeded: "USAGE_LIMIT_EXCEEDED",
  forbidden: "FORBIDDEN",
  not_found: "WORKLOAD_NOT_FOUND",
  gone: "WORKLOAD_UNAVAILABLE",
  conflict: "WORKLOAD_UNAVAILABLE",
  method_not_allowed: "METHOD_NOT_ALLOWED",
  payload_too_large: "REQUEST_ENTITY_TOO_LARGE",
  too_many_requests: "RATE_LIMITED",
  bad_gateway: "WORKLOAD_NOT_LISTENING",
  unavailable: "WORKLOAD_START_FAILED",
  timeout: "COLD_START_TIMEOUT",
};

/** Any thrown value as a GatewayError; an unknown one becomes INTERNAL_ERROR without details. */
export function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof PlatformError) {
    const code = error instanceof NodeUnavailable ? "NODE_UNAVAILABLE" : FROM_PLATFORM[error.code];
    const options: GatewayErrorOptions = { cause: error };
    if (error.detail) options.detail = error.detail;
    if (error.headers) options.headers = error.headers;
    if (code) return new GatewayError(code, error.message, options);
  }
  return new GatewayError("INTERNAL_ERROR", undefined, { cause: error });
}
