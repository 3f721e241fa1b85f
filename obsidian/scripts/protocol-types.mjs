// Writes src/protocol.ts from protocol.schema.json, which `vault-agent acp --schema` prints.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const schemaFile = fileURLToPath(new URL("../protocol.schema.json", import.meta.url));
const typesFile = fileURLToPath(new URL("../src/protocol.ts", import.meta.url));

const comment = (text, indent = "") => (text ? `${indent}/** ${text.replaceAll(/\s*\n\s*/g, " ")} */\n` : "");
const isNull = (schema) => schema.type === "null";

/** The TypeScript type of a schema, as far as the program uses schemas. */
function typeOf(schema, indent) {
  if (schema.$ref) return schema.$ref.replace("#/$defs/", "");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return choices.map((choice) => (isNull(choice) ? "null" : typeOf(choice, indent))).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `Array<${typeOf(schema.items, indent)}>`;
    case "object":
      return objectOf(schema, indent);
    default:
      throw new Error(`no TypeScript type for ${JSON.stringify(schema)}`);
  }
}

function objectOf(schema, indent) {
  if (!schema.properties && typeof schema.additionalProperties === "object") return `Record<string, ${typeOf(schema.additionalProperties, indent)}>`;
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const key = /^[a-zA-Z]+$/.test(name) ? name : JSON.stringify(name);
    return `${comment(field.description, inner)}${inner}${key}${required.has(name) ? "" : "?"}: ${typeOf(field, inner)};\n`;
  });
  return `{\n${fields.join("")}${indent}}`;
}

/** The whole file. */
export function protocolTypes(schema) {
  const definitions = Object.entries(schema.$defs).map(([name, definition]) => {
    const isObject = definition.type === "object" && !definition.oneOf;
    const type = typeOf(definition, "");
    return `${comment(definition.description)}export ${isObject ? `interface ${name} ${type}` : `type ${name} = ${type};`}\n`;
  });
  const all = { ...schema, required: Object.keys(schema.properties) };
  const methods = `/** ${schema.title}, with their parameters and results. */\nexport interface VaultMethods ${objectOf(all, "")}\n`;
  return [
    "// Generated from protocol.schema.json by `npm run types`. Do not edit.\n",
    `/** The version of the methods that this plugin speaks. */\nexport const PROTOCOL_VERSION = ${schema.version};\n`,
    `/** The version of the requests to a live host that this plugin answers. */\nexport const HOST_VERSION = ${schema.hostVersion};\n`,
    ...definitions,
    methods,
  ].join("\n");
}

export const readSchema = () => JSON.parse(readFileSync(schemaFile, "utf8"));
export const readTypes = () => readFileSync(typesFile, "utf8");

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(typesFile, protocolTypes(readSchema()));
