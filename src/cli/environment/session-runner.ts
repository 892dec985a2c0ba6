/** Runs one session of a self-hosted environment in a sandbox of its own, which is deleted when the session ends. */
import { createHash } from "node:crypto";
import { connect } from "../actions/call-input.ts";
import type { Invocation } from "../command.ts";
import { linesOf, openSandbox, operation } from "../sandbox-door.ts";
import type { Work } from "./work-queue.ts";

export interface SessionPlan {
  environmentId: string;
  environmentKey: string;
  /** The queue's address, when it is not Anthropic's own. */
  baseUrl: string | null;
  image: string | undefined;
  memory: number | undefined;
  /** Shell lines inside the sandbox: the first prepares, the second serves the session and ends with it. */
  setup: string;
  command: string;
}

/** A session's sandbox ends after this time whatever becomes of the worker. */
const SESSION_AGE_MAX = "24h";

/** Whether the session's command ended with 0. */
export async function runSession(
  work: Work,
  plan: SessionPlan,
  call: Invocation,
  signal: AbortSignal,
): Promise<boolean> {
  const client = connect(call);
  const name = `session-${createHash("sha256").update(`${plan.environmentId}/${work.id}`).digest("hex").slice(0, 20)}`;
  const runtime = {
    ttl: SESSION_AGE_MAX,
    ...(plan.image === undefined ? {} : { image: plan.image }),
    ...(plan.memory === undefined ? {} : { memory: plan.memory }),
  };
  const metadata = { name, labels: { environment: plan.environmentId } };
  await client.call(operation("sandboxCreate"), { body: { metadata, spec: { runtime } } });
  try {
    const box = await openSandbox(name, call);
    for (const command of [plan.setup, plan.command].filter((line) => line !== "")) {
      const response = await box.fetch("/process", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify({ command, env: envFor(work, plan), waitForCompletion: true }),
        signal,
      });
      if ((await exitCodeOf(response, (text) => call.context.note(`${work.sessionId}: ${text}`))) !== 0) return false;
    }
    return true;
  } finally {
    await client.call(operation("sandboxDelete"), { params: { sandboxName: name } });
  }
}

/**
 * The documented variables of a runner. The session's own secret is enough for a runner; the environment's key, which
 * opens every session of the environment, goes in only when the queue gave no secret.
 */
const envFor = (work: Work, { environmentId, environmentKey, baseUrl }: SessionPlan): Record<string, string> => ({
  ANTHROPIC_ENVIRONMENT_ID: environmentId,
  ANTHROPIC_WORK_ID: work.id,
  ANTHROPIC_SESSION_ID: work.sessionId,
  ...(work.secret === null ? { ANTHROPIC_ENVIRONMENT_KEY: environmentKey } : { ANTHROPIC_WORK_SECRET: work.secret }),
  ...(baseUrl === null ? {} : { ANTHROPIC_BASE_URL: baseUrl }),
});

async function exitCodeOf(response: Response, tell: (text: string) => void): Promise<number> {
  for await (const line of linesOf(response)) {
    const { type, data = "" } = JSON.parse(line) as { type: string; data?: string };
    if (type === "result") return (JSON.parse(data) as { exitCode?: number }).exitCode ?? 1;
    if (data.trim() !== "") tell(data.trimEnd());
  }
  return 1;
}
