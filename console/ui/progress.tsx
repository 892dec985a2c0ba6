import "./progress.css";

export interface ProgressProps {
  label: string;
  /** From 0 to 1. */
  part: number;
  isBad?: boolean;
}

/** How far something is, or how full. */
export function Progress({ label, part, isBad = false }: ProgressProps) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, part)));
  return (
    <span
      class={`progress${isBad ? " bad" : ""}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
    >
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}
