/** There at once, or later. For what nearly always is there at once: waiting for nothing costs a turn, too. */
export type Soon<T> = T | Promise<T>;

/** Goes on without a turn of waiting where there is nothing to wait for. */
export const soon = <T, U>(value: Soon<T>, go: (value: T) => Soon<U>): Soon<U> =>
  value instanceof Promise ? value.then(go) : go(value);
