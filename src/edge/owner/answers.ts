/** Answers the questions of edge processes from what the server itself uses. */
import type { GatewayDeps, Workload } from "../../gateway/deps.ts";
import type { Directory } from "../../gateway/directory.ts";
import { isForwardedAtEdge } from "../../gateway/edge-kinds.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import { finite, type QuestionName, type Questions, type SentWorkload } from "../messages.ts";
import type { Claims } from "./claims.ts";

export interface AnswersDeps
  extends Pick<GatewayDeps, "authenticate" | "authorize" | "stillAllowed">,
    Pick<Directory, "resolve" | "runningOf" | "replacementOf" | "previewTokenUntilMs"> {
  /** Until when a credential that was just recognised may be remembered. */
  rememberedUntil(token: string): number;
  challengeAnswer(token: string): Promise<string | null>;
  challengeCredential(host: string): Promise<Credential | null>;
}

/** What an answer is for: its claims, and the workloads that the process hears about from now on. */
export interface Asker {
  claims: Claims;
  hears(uid: string): void;
  /** The process hears when any address that is not a workload's own leads elsewhere. */
  hearsAddresses(): void;
}

export type Answers = {
  [N in QuestionName]: (asked: Questions[N][0], asker: Asker) => Promise<Questions[N][1]>;
};

/** Whether an edge process may forward to the workload, and not the owner alone. */
const isForwarded = ({ kind, elsewhere, door, tools }: Workload): boolean =>
  isForwardedAtEdge(kind) && elsewhere === null && door !== "platform" && !tools;

function sent({ preview, ...workload }: Workload): SentWorkload {
  if (preview === null) return { ...workload, preview };
  const { id, public: open, requestHeaders, responseHeaders, untilMs } = preview;
  return {
    ...workload,
    preview: {
      ...{ id, public: open, untilMs: finite(untilMs) },
      requestHeaders: requestHeaders?.list ?? [],
      responseHeaders: responseHeaders?.list ?? [],
    },
  };
}

export function createAnswers(deps: AnswersDeps): Answers {
  return {
    async route(target, { hears, hearsAddresses }) {
      hearsAddresses();
      // Names that lead nowhere are refused by the owner, which knows whom it may tell.
      const workload = await Promise.resolve(deps.resolve(target)).catch(() => null);
      if (workload === null || !isForwarded(workload)) return null;
      hears(workload.uid);
      const instances = deps.runningOf(workload.uid);
      return instances.length === 0 ? null : { workload: sent(workload), instances };
    },
    claim: async ({ uid, copy }, { claims }) => claims.take(uid, copy),
    replacement: ({ workload, copy, revision }) => deps.replacementOf(workload, copy, revision),
    async caller({ token }) {
      const principal = await deps.authenticate(token);
      if (principal === null) return null;
      const { id, type, method, keyId = null } = principal;
      return { principal: { id, type, method, keyId }, untilMs: finite(deps.rememberedUntil(token)) };
    },
    async permission({ token, workspace, kind, kept = null }) {
      const principal = await deps.authenticate(token);
      return principal !== null && (await deps.authorize(principal, { workspace, kind, kept }));
    },
    stillAllowed: ({ token, ...access }) => deps.stillAllowed(token, access),
    async previewToken({ workload, preview, token }, { hears, hearsAddresses }) {
      // The answer depends on the roles of the sandbox and on the preview's tokens.
      hears(workload);
      hearsAddresses();
      return finite(await deps.previewTokenUntilMs(preview, token));
    },
    httpChallenge: ({ token }) => deps.challengeAnswer(token),
    tlsChallenge: ({ host }) => deps.challengeCredential(host),
  };
}
