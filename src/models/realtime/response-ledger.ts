/**
 * The responses of one realtime session. Each is a request of its own: it reserves room in the caps when the provider
 * begins it, and leaves one entry in the ledger when the provider has ended it, or when the session ends before.
 */
import { randomUUID } from "node:crypto";
import { asGatewayError, GatewayError } from "../../contract/gateway-errors.ts";
import { at, textOrNone } from "../../lib/untrusted-json.ts";
import { type AdmissionAsk, admitRequest, refuseWhenSpent } from "../admission.ts";
import type { ClientCall } from "../client-call.ts";
import type { ModelGatewayDeps } from "../gateway-deps.ts";
import type { ModelTarget, ResolvedModel } from "../model-records.ts";
import { LedgerEntry, NOTHING, type Outcome } from "../passage/ledger-entry.ts";
import { NO_USAGE } from "../providers/token-usage.ts";
import { servedModel } from "../served-model.ts";
import type { Reservation } from "../token-budget.ts";
import type { UpstreamCandidate } from "../upstream-request.ts";
import type { MeteredUsage } from "../usage-meter.ts";
import { generatedTokens, realtimeUsage } from "./event-usage.ts";

export interface LedgerSession {
  call: ClientCall;
  candidate: UpstreamCandidate;
  asked: ResolvedModel;
  target: ModelTarget;
  /** The session that the caller names; see `maxTokens.per`. */
  session: string | null;
  deps: ModelGatewayDeps;
}

/** The most that a session remembers, by the documents of the providers. */
const CONTEXT_TOKENS = 32_000;
/** The most that one response generates, by the documents of the providers. */
const RESPONSE_TOKENS_MAX = 4096;
const BYTES_PER_TOKEN = 4;
/** Responses under way at one time; providers allow few beside the one of the conversation. */
const OPEN_MAX = 64;

interface OpenResponse {
  entry: LedgerEntry;
  reservation: Reservation | null;
  inputTokens: number;
  outputTokens: number;
}

export class ResponseLedger {
  readonly #session: LedgerSession;
  readonly #open = new Map<string, OpenResponse>();
  /** Input of the latest response: the next one reads it again. */
  #contextTokens = 0;
  /** From the client since then. */
  #sentBytes = 0;

  constructor(session: LedgerSession) {
    this.#session = session;
  }

  /** The client sent something that the next response reads. */
  sent(bytes: number): void {
    this.#sentBytes += bytes;
  }

  /** Null when the event needs no decision; otherwise the refusal that ends the session, or null. */
  observe(event: unknown): Promise<GatewayError | null> | null {
    const type = textOrNone(at(event, "type"));
    if (type === "response.created") return this.#decided(this.#begin(idIn(at(event, "response"), "id")));
    if (type === "response.done") return this.#decided(this.#done(at(event, "response")));
    if (type === TRANSCRIBED) return this.#decided(this.#transcribed(at(event, "usage")));
    const open = type.startsWith("response.") ? this.#open.get(idIn(event, "response_id")) : undefined;
    if (open) open.outputTokens += generatedTokens(type, event);
    return null;
  }

  /** Throws when a cap is used up, and when the session may not go on for another reason. */
  async refuseWhenSpent(): Promise<void> {
    await refuseWhenSpent(await this.#ask(0, randomUUID()), this.#session.deps);
  }

  /** The session is over; responses under way are counted by what has been seen of them. */
  end(): void {
    for (const id of [...this.#open.keys()]) void this.#close(id, "aborted", null);
  }

  async #begin(id: string): Promise<void> {
    // One of the same id would lose its entry, and never give back what it has reserved.
    const [oldest = id] = this.#open.keys();
    await this.#close(this.#open.has(id) || this.#open.size < OPEN_MAX ? id : oldest, "interrupted", null);
    const inputTokens = Math.min(CONTEXT_TOKENS, this.#contextTokens + Math.ceil(this.#sentBytes / BYTES_PER_TOKEN));
    const open: OpenResponse = { entry: this.#entry(), reservation: null, inputTokens, outputTokens: 0 };
    this.#open.set(id, open);
    open.entry.note(this.#attempt(open), "interrupted", estimate(open));
    open.reservation = await this.#admit(open.entry, inputTokens, RESPONSE_TOKENS_MAX);
    // The session may have ended meanwhile, and its entry with it.
    if (this.#open.get(id) !== open) await open.reservation?.settle({ input: inputTokens, output: open.outputTokens });
  }

  async #done(response: unknown): Promise<void> {
    const id = idIn(response, "id");
    const usage = realtimeUsage(at(response, "usage"));
    if (!this.#open.has(id)) await this.#begin(id);
    if (usage) {
      this.#contextTokens = usage.inputTokens + usage.outputTokens;
      this.#sentBytes = 0;
    }
    const failed = at(response, "status") === "failed";
    const outcome = failed ? "failed" : "completed";
    await this.#close(id, outcome, usage ? { usage, estimated: false } : failed ? NOTHING : null);
    await this.refuseWhenSpent();
  }

  /** What the client said, written down by another model at the same provider. */
  async #transcribed(told: unknown): Promise<void> {
    const usage = realtimeUsage(told);
    if (!usage) return;
    const entry = this.#entry();
    const reservation = await this.#admit(entry, usage.inputTokens, usage.outputTokens);
    await entry.record(this.#attempt({ reservation }), "completed", { usage, estimated: false });
    await this.refuseWhenSpent();
  }

  async #close(id: string, outcome: Outcome, metered: MeteredUsage | null): Promise<void> {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    await open.entry.record(this.#attempt(open), outcome, metered ?? estimate(open));
    await open.reservation?.release();
  }

  #entry(): LedgerEntry {
    const { deps, target, asked } = this.#session;
    const entry = new LedgerEntry(deps, { ...target, requestId: randomUUID() });
    return Object.assign(entry, { asked, attempts: 1, status: 200 });
  }

  #attempt({ reservation }: Pick<OpenResponse, "reservation">) {
    const { call, candidate } = this.#session;
    return { call, candidate, reservation };
  }

  async #admit({ target }: LedgerEntry, input: number, output: number): Promise<Reservation | null> {
    const ask = await this.#ask(input, target.requestId);
    return admitRequest({ ...ask, tokens: () => ({ input, output }) }, this.#session.deps);
  }

  /**
   * The policies of the asked model hold, and those of the model that serves. A session outlives keys, rights and records,
   * so the caller and both models are looked at again.
   */
  async #ask(input: number, fingerprint: string): Promise<AdmissionAsk> {
    const { candidate, target, session, deps } = this.#session;
    await target.recheck?.(target.workspace);
    const asked = await servedModel(target, deps);
    refuseGuarded(asked);
    const { name: model } = candidate.resolved.model;
    const serving = model === target.model ? asked : await servedModel({ workspace: target.workspace, model }, deps);
    refuseGuarded(serving);
    const own = serving.policies.filter(({ name }) => !asked.policies.some((policy) => policy.name === name));
    return {
      workspace: target.workspace,
      resolved: { ...asked, policies: [...asked.policies, ...own] },
      tokens: () => ({ input, output: 0 }),
      subject: target.subject,
      session: () => session,
      fingerprint: () => fingerprint,
    };
  }

  async #decided(work: Promise<void>): Promise<GatewayError | null> {
    try {
      await work;
      return null;
    } catch (error) {
      return asGatewayError(error);
    }
  }
}

/** Events are not searched. */
export function refuseGuarded({ guardrails }: ResolvedModel): void {
  if (guardrails?.length)
    throw new GatewayError("POLICY_VIOLATION", "A model with guardrails has no realtime sessions: they are not read.");
}

const TRANSCRIBED = "conversation.item.input_audio_transcription.completed";

const idIn = (value: unknown, member: string): string => textOrNone(at(value, member)).slice(0, ID_MAX);
const ID_MAX = 200;

const estimate = ({ inputTokens, outputTokens }: OpenResponse): MeteredUsage => ({
  usage: { ...NO_USAGE, inputTokens, outputTokens: Math.ceil(outputTokens) },
  estimated: true,
});
