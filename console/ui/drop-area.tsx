import "./drop-area.css";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface DropAreaProps {
  label: string;
  class: string;
  onDrop(dropped: DataTransfer): void;
  children: ComponentChildren;
}

/** A part of a page on which files can be dropped. */
export function DropArea({ label, class: name, onDrop, children }: DropAreaProps) {
  const [isOver, setOver] = useState(false);
  return (
    <section
      class={`${name}${isOver ? " drop" : ""}`}
      aria-label={label}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer) onDrop(event.dataTransfer);
      }}
    >
      {children}
    </section>
  );
}
