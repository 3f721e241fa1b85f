// @vitest-environment node
import { expect, it } from "vitest";
import { protocolTypes, readSchema, readTypes } from "../../scripts/protocol-types.mjs";
import { PROTOCOL_VERSION } from "../../src/protocol";

it("has types that are generated from the schema as it is now: run `npm run types`", () => {
  const schema = readSchema();
  expect(readTypes()).toBe(protocolTypes(schema));
  expect(PROTOCOL_VERSION).toBe(schema.version);
});
