/** How a failed command ends: a distinct exit code, a sentence, and what to do next. */
import { printable } from "../lib/printable.ts";
import { UsageError } from "../lib/usage-error.ts";

export const EXIT = { ok: 0, failure: 1, usage: 2, notFound: 3, denied: 4, conflict: 5, unreachable: 6 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANING: Record<ExitCode, string> = {
  0: "done",
  1: "failed",
  2: "wrong usage, input or configuration; nothing was done",
  3: "does not exist",
  4: "no valid credentials, or not allowed",
  5: "conflict: exists already, is in use, or was changed meanwhile",
  6: "the server or database does not answer",
};

const BY_STATUS: Record<number, ExitCode> = {
  0: EXIT.unreachable,
  400: EXIT.usage,
  401: EXIT.denied,
  403: EXIT.denied,
  404: EXIT.notFound,
  409: EXIT.conflict,
  412: EXIT.conflict,
  502: EXIT.unreachable,
  503: EXIT.unreachable,
  504: EXIT.unreachable,
};

const NEXT_BY_STATUS: Record<number, string> = {
  0: "start the server with `berth up`, or name another one with --url or BERTH_URL; `berth doctor` looks for the cause",
  401: "log in with `berth login URL`, or set BERTH_API_KEY",
  403: "`berth workspaces` shows what these credentials can use",
};

/** The server answers, with a certificate that this machine does not trust. */
const CERTIFICATE = /\((?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_[A-Z_]+)\)/;
const NEXT_TRUST =
  "trust a server that signs its own certificates with `berth trust URL`, or give the authority in NODE_EXTRA_CA_CERTS";

/** The status of an error of the API or of the platform. */
const statusOf = (error: unknown): number | undefined => {
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === "number" ? status : undefined;
};

/** Refused because of --strict: the input is wrong, and nothing was done. */
const isUnknownMember = (error: unknown): boolean => codeOf(error) === "unknown_member";

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;

/** The server's message names a header; a user of the command line needs the option and the command. */
const WHICH_WORKSPACE = `berth: which workspace? These credentials do not say.
  next: add -w NAME to this call, or choose one with \`berth workspaces NAME\`; \`berth workspaces\` lists them`;

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError || isUnknownMember(error)) return EXIT.usage;
  return BY_STATUS[statusOf(error) ?? -1] ?? EXIT.failure;
}

/** The text for stderr. An unexpected error keeps its stack, since it is a bug. */
export function describeFailure(error: unknown): string {
  const status = statusOf(error);
  if (!(error instanceof UsageError) && status === undefined && !isSystemError(error)) {
    return `berth: this is a bug in Berth, please report it\n${error instanceof Error ? error.stack : String(error)}`;
  }
  const next = error instanceof UsageError ? error.next : nextOf(status, (error as Error).message);
  if (codeOf(error) === "workspace_required") return WHICH_WORKSPACE;
  const message = printable(`${(error as Error).message}${requestOf(error)}`);
  return next ? `berth: ${message}\n  next: ${next}` : `berth: ${message}`;
}

const nextOf = (status: number | undefined, message: string): string | undefined =>
  status === 0 && CERTIFICATE.test(message) ? NEXT_TRUST : NEXT_BY_STATUS[status ?? -1];

/** A fault of the server is in its log under the id of the request. */
const requestOf = (error: unknown): string => {
  const { status, requestId } = (error ?? {}) as { status?: unknown; requestId?: unknown };
  return status === 500 && typeof requestId === "string" ? ` (request ${requestId})` : "";
};

/** A file that cannot be read or a full disk: the operating system's message is enough. */
const isSystemError = (error: unknown): boolean =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === "string";
