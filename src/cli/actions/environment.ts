/** `berth environment claude`: serves a self-hosted environment of Claude Managed Agents with sandboxes of the platform. */
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { runSession, type SessionPlan } from "../environment/session-runner.ts";
import { createWorkQueue, type Work, type WorkQueue } from "../environment/work-queue.ts";
import { EXIT } from "../failure.ts";
import { positiveNumber } from "./call-input.ts";

const QUEUE_URL = "https://api.anthropic.com";
/** Sessions at a time when --sessions is left out. */
const SESSIONS_USUAL = 4;
/** Pause after an empty answer, besides the second that the queue itself waits. */
const EMPTY_PAUSE_MS = 1000;
/** The version whose worker was read; a runner of another version is a matter of --setup. */
const SDK = "@anthropic-ai/sdk@1.8.0";
const RUNNER = `import Anthropic from "@anthropic-ai/sdk";
const client = new Anthropic({ apiKey: null, authToken: process.env.ANTHROPIC_ENVIRONMENT_KEY ?? null });
await client.beta.environments.work.worker({ workdir: "/workspace" }).handleItem();`;
const SETUP = `mkdir -p /workspace /opt/runner && cd /opt/runner && npm install --no-audit --no-fund ${SDK} && cat > run.mjs <<'RUN'
${RUNNER}
RUN`;
const COMMAND = "cd /opt/runner && node run.mjs";

export async function serveClaude(call: Invocation): Promise<number> {
  const { context, options } = call;
  const environmentId = text(options.environmentId) ?? context.env.ANTHROPIC_ENVIRONMENT_ID ?? "";
  const environmentKey = context.env.ANTHROPIC_ENVIRONMENT_KEY ?? "";
  if (environmentId === "" || environmentKey === "")
    throw new UsageError(
      "which environment?",
      "set ANTHROPIC_ENVIRONMENT_ID (or --environment-id) and ANTHROPIC_ENVIRONMENT_KEY",
    );
  const command = text(options.command);
  const plan: SessionPlan = {
    environmentId,
    environmentKey,
    baseUrl: context.env.ANTHROPIC_BASE_URL || null,
    image: text(options.image),
    memory: positiveNumber(options.memory, "--memory"),
    setup: text(options.setup) ?? (command === undefined ? SETUP : ""),
    command: command ?? COMMAND,
  };
  const places = positiveNumber(options.sessions, "--sessions") ?? SESSIONS_USUAL;
  const workerId = `berth-${hostname()}-${process.pid}`;
  const queue = createWorkQueue(
    { url: plan.baseUrl ?? QUEUE_URL, environmentId, key: environmentKey, workerId },
    context.note,
  );
  const end = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => end.abort());
  context.note(`serving ${environmentId} with up to ${places} sandboxes; Ctrl-C ends it`);
  await serve(queue, { places, drain: options.drain === true, signal: end.signal }, (work) =>
    serveOne(work, queue, plan, call, end.signal),
  );
  return EXIT.ok;
}

/** Claims work while there are places. Without `drain` the loop ends by the signal alone. */
async function serve(
  queue: WorkQueue,
  { places, drain, signal }: { places: number; drain: boolean; signal: AbortSignal },
  run: (work: Work) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  try {
    while (!signal.aborted) {
      if (running.size >= places) await Promise.race(running);
      const work = await queue.claim(signal);
      if (work === null) {
        if (drain) break;
        await pause(EMPTY_PAUSE_MS, undefined, { signal });
        continue;
      }
      const one: Promise<void> = run(work).finally(() => running.delete(one));
      running.add(one);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await Promise.all(running);
  }
}

/** A failed session fails alone. The runner stops its own work item; the queue is told here when the runner could not. */
async function serveOne(
  work: Work,
  queue: WorkQueue,
  plan: SessionPlan,
  call: Invocation,
  signal: AbortSignal,
): Promise<void> {
  const { note } = call.context;
  note(`${work.sessionId}: begins`);
  const isDone = await runSession(work, plan, call, signal).catch((error: unknown) => {
    if (!signal.aborted) note(`${work.sessionId}: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  });
  if (!isDone) await queue.stop(work);
  note(`${work.sessionId}: ${isDone ? "ended" : "failed"}`);
}
