/** Periodic work of one kind. */
export interface KindTask {
  name: string;
  everyMs: number;
  run(signal: AbortSignal): Promise<void>;
}
