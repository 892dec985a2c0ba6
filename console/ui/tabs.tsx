import "./tabs.css";

export interface Tab {
  title: string;
  href: string;
  isHere: boolean;
}

/** Parts of a page that have addresses of their own. */
export function Tabs({ tabs, label }: { tabs: readonly Tab[]; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ title, href, isHere }) => (
        <a key={href} href={href} aria-current={isHere ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
