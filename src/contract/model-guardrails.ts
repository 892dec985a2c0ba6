/** `spec.guardrails` of a model: what requests and answers must not carry, and who is asked about them. */
import { z } from "zod";

/** Each word is looked for at every place of a request; more would hold up other requests. */
const WORDS_MAX = 50;
/** A shorter word stands in half of all texts. */
const WORD_MIN_LENGTH = 3;
const WORD_MAX_LENGTH = 100;

/** Only patterns of the platform's own: a pattern that a tenant writes can take minutes for one text. */
export const REDACTION_PATTERNS = ["email", "card", "iban", "ipv4", "us-ssn", "api-key"] as const;

export type RedactionPattern = (typeof REDACTION_PATTERNS)[number];

export const GUARDRAIL_EVENTS = ["request", "response"] as const;

export type GuardrailEvent = (typeof GUARDRAIL_EVENTS)[number];

const WEBHOOK_URL_MAX_LENGTH = 2048;
/** As long as the mask that stands for a stored secret. */
const WEBHOOK_SECRET_MIN_LENGTH = 8;
const WEBHOOK_SECRET_MAX_LENGTH = 256;
const WEBHOOK_TIMEOUT_MIN_MS = 100;
/** A caller waits for the webhook twice, and gives up before long. */
const WEBHOOK_TIMEOUT_MAX_MS = 30_000;
export const WEBHOOK_TIMEOUT_DEFAULT_MS = 5000;

function isWebhookUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.hash;
}

const webhook = z.strictObject({
  url: z
    .string()
    .max(WEBHOOK_URL_MAX_LENGTH)
    .refine(isWebhookUrl, "must be an http or https address without credentials or fragment")
    .describe("Gets a signed POST. Only an admin sets or changes it, because it receives what callers write."),
  secret: z
    .string()
    .min(WEBHOOK_SECRET_MIN_LENGTH)
    .max(WEBHOOK_SECRET_MAX_LENGTH)
    .describe("Key of the signature. Masked in every answer."),
  events: z
    .array(z.enum(GUARDRAIL_EVENTS))
    .min(1)
    .max(GUARDRAIL_EVENTS.length)
    .optional()
    .describe(
      "`request`: asked before the provider. `response`: asked before the caller gets the answer. Default both.",
    ),
  timeoutMs: z
    .int()
    .min(WEBHOOK_TIMEOUT_MIN_MS)
    .max(WEBHOOK_TIMEOUT_MAX_MS)
    .optional()
    .describe(`Milliseconds until a webhook that does not answer has failed. Default ${WEBHOOK_TIMEOUT_DEFAULT_MS}.`),
  onFailure: z
    .enum(["refuse", "allow"])
    .optional()
    .describe("What happens when the webhook fails: the request is refused (the default) or goes on."),
});

export type GuardrailWebhook = z.infer<typeof webhook>;

export const modelGuardrails = z.strictObject({
  redact: z
    .strictObject({
      patterns: z
        .array(z.enum(REDACTION_PATTERNS))
        .max(REDACTION_PATTERNS.length)
        .optional()
        .describe("What is replaced by its name in brackets, `[EMAIL]` for instance. Cards and IBANs by check digit."),
      words: z
        .array(z.string().min(WORD_MIN_LENGTH).max(WORD_MAX_LENGTH))
        .max(WORDS_MAX)
        .optional()
        .describe("Words that are replaced by `[REDACTED]`, in any case."),
      answers: z.boolean().optional().describe("Answers are redacted too, streams included. Default false."),
    })
    .optional()
    .describe("Parts of a request that are replaced before the provider is asked."),
  webhook: webhook.optional().describe("An address that allows, refuses or replaces requests and answers."),
});

export type GuardrailRules = z.infer<typeof modelGuardrails>;
