/**
 * Sets this process's clock to another day, from which it goes on as usual: what was given out then (tokens, sessions)
 * is judged as it would have been then.
 */
export function goBackTo(time: string): void {
  const Real = Date;
  const offsetMs = Real.parse(time) - Real.now();
  globalThis.Date = class extends Real {
    constructor(...given: [] | [number]) {
      super(...((given.length === 0 ? [Real.now() + offsetMs] : given) as [number]));
    }
    static override now = (): number => Real.now() + offsetMs;
  } as DateConstructor;
}
