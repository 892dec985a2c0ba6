import "./tabs.css";
import { useEffect, useRef } from "preact/hooks";

export interface Tab {
  title: string;
  href: string;
  isHere: boolean;
}

/** Parts of a page that have addresses of their own. */
export function Tabs({ tabs, label }: { tabs: readonly Tab[]; label: string }) {
  const strip = useRef<HTMLElement>(null);
  const current = tabs.find(({ isHere }) => isHere)?.href;
  // On a narrow screen the strip scrolls sideways; the tab that is open must be in view.
  useEffect(() => {
    const [nav, tab] = [strip.current, strip.current?.querySelector<HTMLElement>("[aria-current]")];
    if (nav && tab) nav.scrollLeft = tab.offsetLeft - nav.offsetLeft - (nav.clientWidth - tab.offsetWidth) / 2;
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={strip}>
      {tabs.map(({ title, href, isHere }) => (
        <a key={href} href={href} aria-current={isHere ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
