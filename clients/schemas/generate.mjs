// `node generate.mjs MODULES TYPES OUT`: JSON Schemas of the vendors' answers, from the types of their SDKs.
//
// TypeScript's types are the only published form that tells a required member that may be null from an
// optional one: `stop_details: RefusalStopDetails | null` is not `stop_details?: …`. The Python packages
// declare both as `Optional[…] = None`.
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, types, out] = process.argv.slice(2);
const { createGenerator } = createRequire(join(modules, "index.js"))("ts-json-schema-generator");

// TypeScript resolves packages from the folder of the file that imports them.
const place = join(modules, "types");
mkdirSync(place, { recursive: true });
const tsconfig = join(place, "tsconfig.json");
const compilerOptions = { strict: true, module: "nodenext", moduleResolution: "nodenext", target: "es2022", types: [] };
writeFileSync(tsconfig, JSON.stringify({ compilerOptions }));

const schemas = {};
for (const vendor of ["anthropic", "openai", "google"]) {
  const path = join(place, `${vendor}.ts`);
  copyFileSync(join(types, `${vendor}.ts`), path);
  const generator = createGenerator({ path, tsconfig, type: "Answers", skipTypeCheck: true, jsDoc: "none" });
  schemas[vendor] = generator.createSchema("Answers");
}
writeFileSync(out, JSON.stringify(schemas));
