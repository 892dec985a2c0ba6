/** `spec.guardrails` of a model: what a request must not carry to the provider. */
import { z } from "zod";

/** Each word is looked for at every place of a request; more would hold up other requests. */
const WORDS_MAX = 50;
/** A shorter word stands in half of all texts. */
const WORD_MIN_LENGTH = 3;
const WORD_MAX_LENGTH = 100;

/** Only patterns of the platform's own: a pattern that a tenant writes can take minutes for one text. */
export const REDACTION_PATTERNS = ["email", "card", "iban", "ipv4", "us-ssn", "api-key"] as const;

export type RedactionPattern = (typeof REDACTION_PATTERNS)[number];

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
    })
    .optional()
    .describe("Parts of a request that are replaced before the provider is asked."),
});

export type GuardrailRules = z.infer<typeof modelGuardrails>;
