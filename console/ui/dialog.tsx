import "./dialog.css";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export interface DialogProps {
  title: string;
  onClose(): void;
  children: ComponentChildren;
  foot?: ComponentChildren;
}

/** The browser's own modal dialog: it keeps the focus inside and closes with Escape. */
export function Dialog({ title, onClose, children, foot }: DialogProps) {
  const own = useModal();
  return (
    <dialog ref={own} class="dialog" aria-label={title} onClose={onClose}>
      <div class="dialog-head">
        <h2 class="grow">{title}</h2>
        <Button kind="bare" isIcon label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </div>
      <div class="dialog-body">{children}</div>
      {foot === undefined ? null : <div class="dialog-foot">{foot}</div>}
    </dialog>
  );
}

export function useModal() {
  const own = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    own.current?.showModal();
  }, []);
  return own;
}
