/** Line icons of 16 pixels, as paths; text beside them or a label of the button says what they mean. */
const PATHS = {
  home: "M2.5 7.5 8 3l5.5 4.500V13h-4V9.500h-3V13h-4z",
  box: "M8 1.8 13.500 4.800v6.400L8 14.200 2.500 11.200V4.800zM2.500 4.800 8 8l5.500-3.200M8 8v6.200",
  agent:
    "M4 5.500h8a1.500 1.500 0 0 1 1.500 1.500v4a1.500 1.500 0 0 1-1.500 1.500H4A1.500 1.500 0 0 1 2.500 11V7A1.500 1.500 0 0 1 4 5.500zM8 5.500V3M6 8.500v1M10 8.500v1",
  plug: "M6 2v3.500M10 2v3.500M4 5.500h8V8a4 4 0 0 1-8 0zM8 12v2.500",
  job: "M3 3.500h10M3 8h10M3 12.500h6",
  app: "M2.500 3.500h11v9h-11zM2.500 6.500h11",
  model: "M8 2.500 9.500 6.500 13.500 8 9.500 9.500 8 13.500 6.500 9.500 2.500 8 6.500 6.500z",
  disk: "M3 4.500C3 3.400 5.200 2.500 8 2.500s5 .9 5 2-2.200 2-5 2-5-.9-5-2zM3 4.500v7c0 1.100 2.200 2 5 2s5-.9 5-2v-7M3 8c0 1.100 2.200 2 5 2s5-.9 5-2",
  network: "M8 2.500v3M8 5.500H4v2.500M8 5.500h4V8M2.500 8h3v3h-3zM10.500 8h3v3h-3z",
  rule: "M8 2 13 4v4c0 3-2.200 5-5 6-2.800-1-5-3-5-6V4z",
  log: "M3 3h10v10H3zM5.500 6h5M5.500 8h5M5.500 10h3",
  chart: "M2.500 13.500h11M4.500 11V8M8 11V4M11.500 11V6.500",
  people:
    "M6 7.500a2.200 2.200 0 1 0 0-4.400 2.200 2.200 0 0 0 0 4.400zM2 13c0-2.200 1.800-3.500 4-3.500s4 1.300 4 3.500M10.500 3.300a2.200 2.200 0 0 1 0 4M12 9.800c1.300.5 2 1.700 2 3.200",
  search: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.400 10.400 13.500 13.500",
  plus: "M8 3v10M3 8h10",
  menu: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.500 5.500h7v7h-7zM3.500 10.500v-7h7",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7",
  out: "M6.500 3h-3v10h3M9.500 5l3 3-3 3M12.500 8h-6",
  check: "M3 8.500 6.500 12 13 4.500",
  right: "M6 3.500 10.500 8 6 12.500",
  trash: "M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.6 8.500h5.800l.6-8.500",
  folder: "M2.500 4h4l1.500 1.500h5.500V12.500h-11z",
  file: "M4 2.500h5L12 5.500v8H4zM9 2.500v3h3",
  play: "M5 3.500 12 8l-7 4.500z",
  stop: "M4 4h8v8H4z",
  grid: "M2.500 2.500h4v4h-4zM9.500 2.500h4v4h-4zM2.500 9.500h4v4h-4zM9.500 9.500h4v4h-4z",
  layers: "M8 2.500 14 5.500 8 8.500 2 5.500zM2 8l6 3 6-3M2 10.500l6 3 6-3",
  server: "M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01",
  settings: "M2.500 5h5M11 5h2.500M9.200 3.300v3.400M2.500 11h2.500M8.500 11h5M6.700 9.300v3.400",
  up: "M8 13V4M4.500 7.500 8 4l3.500 3.500M3 2h10",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
