import "./button.css";
import type { ComponentChildren } from "preact";

interface Look {
  kind?: "main" | "plain" | "danger" | "bare";
  children: ComponentChildren;
  /** Why it cannot be used now. It stays visible and says so. */
  unable?: string | null | undefined;
  label?: string | undefined;
  isIcon?: boolean;
}

const classOf = ({ kind = "plain", isIcon = false }: Look): string => `button ${kind}${isIcon ? " icon" : ""}`;

export function Button({ onClick, type = "button", busy = false, ...look }: Look & ButtonOwn) {
  const { unable = null, label, children } = look;
  return (
    <button
      type={type}
      class={classOf(look)}
      aria-label={label}
      title={unable ?? label}
      aria-disabled={unable !== null || busy}
      aria-busy={busy}
      onClick={(event) => {
        if (unable !== null || busy) event.preventDefault();
        else onClick?.();
      }}
    >
      {children}
    </button>
  );
}

interface ButtonOwn {
  onClick?: () => void;
  type?: "button" | "submit";
  busy?: boolean;
}

export function LinkButton({ href, ...look }: Look & { href: string }) {
  const { unable = null, label, children } = look;
  if (unable !== null) return <Button {...look} />;
  return (
    <a class={classOf(look)} href={href} aria-label={label} title={label}>
      {children}
    </a>
  );
}
