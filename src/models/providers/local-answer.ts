/** What a provider without a network is asked, and what it answers: the shape of an HTTP exchange. */
export interface LocalRequest {
  method: string;
  /** As it would be sent, with query. */
  path: string;
  body: Buffer;
  nowMs: number;
}

export interface LocalAnswer {
  status: number;
  contentType: string;
  /** Sent one by one; a JSON answer has one. */
  chunks: string[];
}
