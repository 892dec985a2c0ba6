/** A value or a promise of it. Avoids an event-loop turn when the value is already known, which is the common case. */
export type Soon<T> = T | Promise<T>;

/** Like `then`, but runs `go` synchronously when the value is already known. */
export const soon = <T, U>(value: Soon<T>, go: (value: T) => Soon<U>): Soon<U> =>
  value instanceof Promise ? value.then(go) : go(value);
