/** Tokens that open previews, as the owner told them, kept until a token, a preview, a workload or an identity changes. */
import type { Maybe } from "../../gateway/deps.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Questions } from "../messages.ts";
import type { Ask } from "./questions.ts";

/** Cached tokens, to bound memory. A full cache is emptied. Refused texts are not kept: anybody can send many. */
const TOKENS_MAX = 10_000;

export interface PreviewTokens {
  /** Whether the token opens the preview of this workload now. */
  check(workload: string, preview: Questions["previewToken"][0]["preview"], token: string): Maybe<boolean>;
  forget(): void;
}

export function createPreviewTokens(ask: Ask, clock: Clock): PreviewTokens {
  const untilMs = new Map<string, number>();

  async function look(asked: Questions["previewToken"][0], key: string): Promise<boolean> {
    const { value, fresh } = await ask("previewToken", asked);
    if (fresh && value > 0) {
      if (untilMs.size >= TOKENS_MAX) untilMs.clear();
      untilMs.set(key, value);
    }
    return value > 0;
  }

  return {
    check(workload, preview, token) {
      const key = `${preview.uid} ${token}`;
      return (untilMs.get(key) ?? 0) > clock.now() || look({ workload, preview, token }, key);
    },
    forget: () => untilMs.clear(),
  };
}
