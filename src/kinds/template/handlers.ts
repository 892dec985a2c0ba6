import { notFound } from "../../contract/errors.ts";
import { type Implementation, implement, type Platform } from "../port.ts";
import { type Template, templates } from "./catalogue.ts";
import { templateFiles, templateGet, templateList } from "./operations.ts";

export const templateHandlers: readonly Implementation[] = [
  implement(templateList, async (_call, deps) => [...templates().values()].map((template) => toWire(template, deps))),
  implement(templateGet, async ({ params }, deps) => toWire(find(params.templateName ?? ""), deps)),
  implement(templateFiles, async ({ params }) => {
    const { name, sha, files } = find(params.templateName ?? "");
    return { name, sha, files };
  }),
];

function find(name: string): Template {
  const template = templates().get(name);
  if (!template) throw notFound(`Template '${name}'`);
  return template;
}

const toWire = ({ files: _files, ...template }: Template, { settings }: Platform) => ({
  ...template,
  defaultBranch: "main",
  url: `${settings.publicUrl}/v0/templates/${template.name}/files`,
  icon: iconOf(template.type, "#1f2937", "#ffffff"),
  iconDark: iconOf(template.type, "#f9fafb", "#111827"),
  downloadCount: 0,
  forksCount: 0,
  starCount: 0,
});

/** An inline SVG with the first letter of the type. */
function iconOf(type: string, back: string, front: string): string {
  const letter = (type[0] ?? "t").toUpperCase();
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="${back}"/><text x="16" y="22" font-family="sans-serif" font-size="18" text-anchor="middle" fill="${front}">${letter}</text></svg>`;
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
}
