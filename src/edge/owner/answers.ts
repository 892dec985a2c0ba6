/** Answers the questions of edge processes from what the server itself uses. */
import type { GatewayDeps, Workload } from "../../gateway/deps.ts";
import type { Directory } from "../../gateway/directory.ts";
import { isForwardedAtEdge } from "../../gateway/edge-kinds.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import type { QuestionName, Questions } from "../messages.ts";
import type { Claims } from "./claims.ts";

export interface AnswersDeps
  extends Pick<GatewayDeps, "authenticate" | "authorize">,
    Pick<Directory, "resolve" | "runningOf" | "replacementOf"> {
  /** Until when a credential that was just recognised may be remembered. */
  rememberedUntil(token: string): number;
  challengeAnswer(token: string): Promise<string | null>;
  challengeCredential(host: string): Promise<Credential | null>;
}

/** What an answer is for: its claims, and the workloads that the process hears about from now on. */
export interface Asker {
  claims: Claims;
  hears(uid: string): void;
}

export type Answers = {
  [N in QuestionName]: (asked: Questions[N][0], asker: Asker) => Promise<Questions[N][1]>;
};

/** Whether an edge process may forward to the workload, and not the owner alone. */
const isForwarded = ({ kind, elsewhere, door, preview }: Workload): boolean =>
  isForwardedAtEdge(kind) && elsewhere === null && door !== "platform" && preview === null;

export function createAnswers(deps: AnswersDeps): Answers {
  return {
    async route(target, { hears }) {
      // Names that lead nowhere are refused by the owner, which knows whom it may tell.
      const workload = await Promise.resolve(deps.resolve(target)).catch(() => null);
      if (workload === null || !isForwarded(workload)) return null;
      hears(workload.uid);
      const instances = deps.runningOf(workload.uid);
      return instances.length === 0 ? null : { workload, instances };
    },
    claim: async ({ uid, copy }, { claims }) => claims.take(uid, copy),
    replacement: ({ workload, copy, revision }) => deps.replacementOf(workload, copy, revision),
    async caller({ token }) {
      const principal = await deps.authenticate(token);
      if (principal === null) return null;
      const { id, type, method, keyId = null } = principal;
      // An endless time has no number in a message.
      const untilMs = Math.min(deps.rememberedUntil(token), Number.MAX_SAFE_INTEGER);
      return { principal: { id, type, method, keyId }, untilMs };
    },
    async permission({ token, workspace, kind, kept = null }) {
      const principal = await deps.authenticate(token);
      return principal !== null && (await deps.authorize(principal, { workspace, kind, kept }));
    },
    httpChallenge: ({ token }) => deps.challengeAnswer(token),
    tlsChallenge: ({ host }) => deps.challengeCredential(host),
  };
}
