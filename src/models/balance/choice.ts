/** Which model of a balance is asked next. */
import { hash } from "node:crypto";
import type { BalanceRules } from "../../contract/model-balance.ts";
import type { UpstreamCandidate } from "../upstream-request.ts";
import type { ModelHealth } from "./health.ts";

/** A model of a balance. */
export interface Member {
  candidate: UpstreamCandidate;
  /** Of the member's own record: its health is kept under it. */
  uid: string;
  weight: number;
}

export interface ChoiceContext {
  health: ModelHealth;
  strategy: BalanceRules["strategy"];
  stream: boolean;
  /** Requests with the same word go to the same model while that is well; null when the caller names no session. */
  session: string | null;
  random: () => number;
}

/**
 * Null when only ejected models are left. Ejected models are asked only when no other was: then one of them, because
 * a balance whose models are all ejected must not refuse what a provider might serve.
 */
export function chooseMember(left: readonly Member[], isFirst: boolean, context: ChoiceContext): Member | null {
  const { health, strategy, session } = context;
  const able = left.filter(({ uid }) => health.standing(uid) !== "out");
  if (able.length === 0) return isFirst ? soonestBack(left, health) : null;
  if (session !== null) return bySession(able, session);
  const due = able.find(({ uid }) => health.standing(uid) === "due");
  if (due) return due;
  return strategy === "latency" ? byLatency(able, context) : byWeight(able, context.random);
}

const soonestBack = (members: readonly Member[], health: ModelHealth): Member | null =>
  leastOf(members, ({ uid }) => health.ejectedUntilMs(uid));

function byWeight(members: readonly Member[], random: () => number): Member | null {
  let rest = random() * members.reduce((sum, { weight }) => sum + weight, 0);
  for (const member of members) {
    rest -= member.weight;
    if (rest < 0) return member;
  }
  return members.at(-1) ?? null;
}

/** Rendezvous hashing: when a model joins or leaves, only the sessions that it gains or loses move. */
export function bySession(members: readonly Member[], session: string): Member | null {
  return leastOf(members, ({ uid, weight }) => {
    const drawn = Number.parseInt(hash("sha256", JSON.stringify([session, uid])).slice(0, HASH_DIGITS), 16);
    return -Math.log((drawn + 0.5) / 16 ** HASH_DIGITS) / weight;
  });
}

/** 48 bits: exact in a number. */
const HASH_DIGITS = 12;

/**
 * The expected wait, by the requests under way. A model that was never asked is measured by its first request; a model
 * that was asked and has no average answers with errors only, and counts as an average one.
 */
function byLatency(members: readonly Member[], { health, stream }: ChoiceContext): Member | null {
  const known = members.map(({ uid }) => health.latencyMs(uid, stream));
  const measured = known.filter((ms) => ms !== null);
  const typicalMs = measured.length === 0 ? 1 : measured.reduce((sum, ms) => sum + ms, 0) / measured.length;
  const costs = new Map(
    members.map((member, index) => {
      const underWay = health.underWay(member.uid);
      const latencyMs = known[index] ?? (health.tried(member.uid, stream) ? typicalMs : 0);
      return [member, (latencyMs * (underWay + 1)) / member.weight];
    }),
  );
  return leastOf(members, (member) => costs.get(member) ?? 0);
}

/** The first of several equal ones. */
function leastOf(members: readonly Member[], measure: (member: Member) => number): Member | null {
  let least: Member | null = null;
  let leastValue = Number.POSITIVE_INFINITY;
  for (const member of members) {
    const value = measure(member);
    if (least !== null && value >= leastValue) continue;
    least = member;
    leastValue = value;
  }
  return least;
}
