/** An announced archive. */
export interface UploadTicket {
  /** Name of the revision or version that the archive becomes. */
  revision: string;
  nonce: string;
  expiresAt: number;
}
