import "./code.css";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { say } from "./toast.tsx";

export async function copy(text: string, noun: string): Promise<void> {
  await navigator.clipboard.writeText(text).then(
    () => say(`${noun} is copied.`),
    () => say("The browser does not let this page copy. Select the text instead.", true),
  );
}

/** Text that people take elsewhere. */
export function Code({ text, noun = "The text" }: { text: string; noun?: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <Button kind="bare" isIcon label="Copy" onClick={() => void copy(text, noun)}>
        <Icon name="copy" />
      </Button>
    </div>
  );
}
