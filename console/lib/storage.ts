/** A signal whose value this browser remembers. What it remembers is never a secret. */
import { type Signal, signal } from "@preact/signals";

export function remembered(name: string, otherwise: string): Signal<string> {
  const key = `console.${name}`;
  const value = signal(localStorage.getItem(key) ?? otherwise);
  value.subscribe((next) => localStorage.setItem(key, next));
  return value;
}
