/** Codes of reasons for a revocation (RFC 5280, 5.3.1) that the owner of a certificate may give. */
export const REVOCATION_REASONS = {
  unspecified: 0,
  keyCompromise: 1,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
} as const;

export type RevocationReason = keyof typeof REVOCATION_REASONS;
