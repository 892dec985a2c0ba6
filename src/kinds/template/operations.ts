import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const templateVariable = z.object({
  name: z.string(),
  description: z.string(),
  integration: z.string().default("").describe("The integration it is a secret of, if any."),
  path: z.string().default("").describe("Where it stands in the project's files, if it does."),
  secret: z.boolean(),
});

const template = z.object({
  name: z.string(),
  description: z.string(),
  type: z.string().describe("The kind of resource that it becomes."),
  language: z.string(),
  defaultBranch: z.string(),
  sha: z.string().describe("Changes with the files."),
  url: z.string().describe("Where its files are read."),
  icon: z.string(),
  iconDark: z.string(),
  downloadCount: z.int().describe("Copies are not counted."),
  forksCount: z.int(),
  starCount: z.int(),
  topics: z.array(z.string()),
  variables: z.array(templateVariable),
});

const common = { method: "GET", tenancy: "caller", role: "member", kind: "template" } as const;

export const templateList = defineOperation({
  ...common,
  id: "templateList",
  path: "/templates",
  summary: "List the templates that come with the platform",
  scope: "templates:list",
  response: z.array(template),
  verb: "list",
});

export const templateGet = defineOperation({
  ...common,
  id: "templateGet",
  path: "/templates/{templateName}",
  summary: "Read one template",
  scope: "templates:get",
  response: template,
  verb: "get",
});

export const templateFiles = defineOperation({
  ...common,
  id: "templateFiles",
  path: "/templates/{templateName}/files",
  summary: "Read the files of a template",
  scope: "templates:get",
  response: z.object({
    name: z.string(),
    sha: z.string(),
    files: z.array(z.object({ path: z.string(), content: z.string() })),
  }),
});

export const templateOperations = [templateList, templateGet, templateFiles];
