import "./toast.css";
import { signal } from "@preact/signals";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

interface Toast {
  id: number;
  text: string;
  isBad: boolean;
}

/** Long enough to be read twice; a failure stays until it is closed. */
const SHOWN_MS = 6000;

const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function say(text: string, isBad = false): void {
  last += 1;
  const id = last;
  toasts.value = [...toasts.value, { id, text, isBad }];
  if (!isBad) setTimeout(() => close(id), SHOWN_MS);
}

const close = (id: number): void => {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
};

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, isBad }) => (
        <div key={id} class={`toast${isBad ? " bad" : ""}`}>
          <span class="grow">{text}</span>
          <Button kind="bare" isIcon label="Close" onClick={() => close(id)}>
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}
