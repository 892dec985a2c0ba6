/** openapi.json, derived from the operation list. */
import { z } from "zod";
import type { Operation } from "./operation.ts";

type Json = Record<string, unknown>;

export interface OpenApiOptions {
  version: string;
  brand: string;
  serverUrl: string;
}

export function buildOpenApi(operations: readonly Operation[], options: OpenApiOptions): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const path = `/v0${operation.path}`;
    paths[path] ??= {};
    paths[path][operation.method.toLowerCase()] = describeOperation(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Berth",
      version: options.version,
      description: "Control plane of a Berth server. The behaviour version is chosen with the Service-Version header.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: options.serverUrl }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        header: { type: "apiKey", in: "header", name: "X-Service-Authorization" },
      },
      schemas: { Error: ERROR_SCHEMA },
    },
  };
}

const ERROR_SCHEMA = {
  type: "object",
  required: ["code", "error", "message"],
  properties: {
    code: { type: ["integer", "string"], description: "The HTTP status; a machine word on sandbox errors." },
    error: { type: "string", description: "Machine-readable code." },
    message: { type: "string", description: "What went wrong and what to do." },
  },
};

function describeOperation(operation: Operation): Json {
  const status = operation.status ?? 200;
  const success =
    status === 204 ? { description: "Done." } : { description: "Success.", content: contentOf(operation) };
  return {
    operationId: operation.id,
    summary: operation.summary,
    tags: [operation.kind ?? operation.path.split("/")[1]],
    parameters: [...operation.params.map(pathParameter), ...queryParameters(operation), ...HEADERS],
    ...(operation.stream
      ? { requestBody: { required: true, content: { [operation.stream]: { schema: BYTES } } } }
      : {}),
    ...(operation.body
      ? { requestBody: { required: !operation.bodyOptional, content: json(schemaOf(operation.body, "input")) } }
      : {}),
    responses: {
      [status]: success,
      ...(operation.mayWait ? { 202: { ...success, description: "Somebody else has to agree first." } } : {}),
      default: { description: "Error.", content: json({ $ref: "#/components/schemas/Error" }) },
    },
    security: operation.tenancy === "public" ? [] : [{ bearer: [] }, { header: [] }],
    ...(operation.scope ? { "x-scope": operation.scope } : {}),
    "x-role": operation.role,
    "x-tenancy": operation.tenancy,
  };
}

const contentOf = ({ events, bytes, response }: Operation): Json => {
  if (bytes) return { [bytes]: { schema: BYTES } };
  const schema = schemaOf(response, "output");
  return events ? { "text/event-stream": { schema } } : json(schema);
};

const BYTES: Json = { type: "string", format: "binary" };

const pathParameter = (name: string): Json => ({ name, in: "path", required: true, schema: { type: "string" } });

function queryParameters(operation: Operation): Json[] {
  if (!operation.query) return [];
  const schema = schemaOf(operation.query, "input");
  const required = new Set((schema.required as string[] | undefined) ?? []);
  return Object.entries((schema.properties as Record<string, Json> | undefined) ?? {}).map(([name, property]) => ({
    name,
    in: "query",
    required: required.has(name),
    schema: property,
  }));
}

const HEADERS: Json[] = [
  { name: "Service-Version", in: "header", required: false, schema: { type: "string" } },
  { name: "X-Service-Workspace", in: "header", required: false, schema: { type: "string" } },
];

/** The JSON schema of a declaration, without the dialect. */
export function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    reused: "inline",
  }) as Json;
  return rest;
}

const json = (schema: Json): Json => ({ "application/json": { schema } });
