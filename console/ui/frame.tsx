import "./frame.css";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export interface FrameProps {
  title: string;
  address: string;
  /** No other page has the origin of the address, so the page may use it. */
  hasOwnOrigin: boolean;
  onClose(): void;
}

const MAY = "allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/**
 * A page of another origin, sandboxed: it can neither lead this page elsewhere nor ask for a device. The browser refuses
 * every origin that the policy of the console does not name.
 */
export function Frame({ title, address, hasOwnOrigin, onClose }: FrameProps) {
  const [round, setRound] = useState(0);
  return (
    <section class="frame" aria-label={title}>
      <div class="frame-head">
        <span class="mono grow">{address.split("?")[0]}</span>
        <Button kind="bare" onClick={() => setRound(round + 1)}>
          Reload
        </Button>
        <Button kind="bare" isIcon label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </div>
      <iframe
        key={`${address} ${round}`}
        title={title}
        src={address}
        sandbox={hasOwnOrigin ? `${MAY} allow-same-origin` : MAY}
        allow=""
        referrerpolicy="no-referrer"
      />
    </section>
  );
}
