/**
 * Output on its way to a screen that may be slower than its writer. What the screen has no time to show is left out and
 * the screen begins anew, so that an interrupted program is seen to end at once and not after all that it wrote.
 */
export interface Screen {
  /** Calls `onShown` when the text is on the screen. */
  write(text: string, onShown: () => void): void;
}

/** Given to the screen at a time. */
const SHOWING_MAX = 64 * 1024;
/** Of more text than this the oldest lines are left out: some screens, which nobody reads at that speed. */
const WAITING_MAX = 256 * 1024;
const RESET = "\u001bc";

export function createNewestOutput(screen: Screen): (text: string) => void {
  let waiting = "";
  let isShowing = false;
  const show = (): void => {
    if (isShowing || waiting === "") return;
    isShowing = true;
    const text = waiting.slice(0, SHOWING_MAX);
    waiting = waiting.slice(SHOWING_MAX);
    screen.write(text, () => {
      isShowing = false;
      show();
    });
  };
  return (text) => {
    waiting += text;
    if (waiting.length > WAITING_MAX) waiting = RESET + newestLines(waiting);
    show();
  };
}

/** A cut within a line could be within a control sequence. */
function newestLines(text: string): string {
  const kept = text.slice(-SHOWING_MAX);
  return kept.slice(kept.indexOf("\n") + 1);
}
