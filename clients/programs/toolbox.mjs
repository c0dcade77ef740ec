// Tools and options of the JavaScript programs.

import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export const [url, first, prompt, ...rest] = process.argv.slice(2);
// The options are those of toolbox.py.
export const options = Object.fromEntries(rest.map((it) => [it.slice(0, it.indexOf("=")), it.slice(it.indexOf("=") + 1)]));
// The user's prompts, in order.
export const turns = options.then ? [prompt, options.then] : [prompt];
export const key = "test-key";
export const most = 25;
export const streams = options.stream !== "no";
export const strict = !options.mcp;

// Model of the request with this number, from 0.
export const model = (at) => (options.switch && at >= 2 ? options.switch : first);
// Tool that the request with this number must call.
export const forced = (at) => (at === 0 ? options.force : undefined);

export const format = {
  type: "object",
  properties: { files: { type: "integer" }, done: { type: "string" } },
  required: ["files", "done"],
  additionalProperties: false,
};
// The smallest PNG and PDF.
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAACklEQVR4nGNgAAAAAgAB4iG8MwAAAABJRU5ErkJggg==";
const pdf = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").toString("base64");
export const media = { take_photo: ["image/png", png], get_paper: ["application/pdf", pdf] };

// The packages are not beside this file; the variable holds their folder.
const require = createRequire(path.join(process.env.LAB_MODULES, "..", "lab.js"));
export const load = async (name) => import(pathToFileURL(resolved(name)).href);

function resolved(name) {
  // A package may export different modules to `import` and to `require`.
  const folder = name.startsWith("@") ? name.split("/").slice(0, 2).join("/") : name.split("/")[0];
  const place = path.join(process.env.LAB_MODULES, folder);
  const about = JSON.parse(fs.readFileSync(path.join(place, "package.json")));
  const inside = name === folder ? "." : "." + name.slice(folder.length);
  const pick = (it) => {
    if (typeof it === "string") return it;
    for (const kind of ["node", "import", "default"]) {
      if (it?.[kind]) return pick(it[kind]);
    }
    return undefined;
  };
  const wanted = pick(about.exports?.[inside]);
  return wanted ? path.join(place, wanted) : require.resolve(name);
}

const text = { type: "string" };
const object = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

const own = [
  {
    name: "write_file",
    description: "Write a text file, with its folders.",
    schema: object({ path: text, content: text }),
    run: (it) => {
      fs.mkdirSync(path.dirname(it.path), { recursive: true });
      fs.writeFileSync(it.path, it.content);
      return "written";
    },
  },
  {
    name: "read_file",
    description: "Read a text file.",
    schema: object({ path: text }),
    run: (it) => fs.readFileSync(it.path, "utf8"),
  },
  {
    name: "edit_file",
    description: "Replace a text in a file.",
    schema: object({ path: text, old: text, new: text }),
    run: (it) => {
      fs.writeFileSync(it.path, fs.readFileSync(it.path, "utf8").replaceAll(it.old, it.new));
      return "edited";
    },
  },
  {
    name: "search",
    description: "Find the lines of the files in a folder that hold a text.",
    schema: object({ pattern: text, folder: text }),
    run: (it) =>
      fs
        .readdirSync(it.folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .flatMap((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name), "utf8").split("\n"))
        .filter((line) => line.includes(it.pattern))
        .join("\n"),
  },
  {
    name: "list_files",
    description: "List the files of the working folder.",
    schema: object({}),
    run: () => fs.readdirSync(".", { recursive: true }).join("\n"),
  },
  {
    name: "pause",
    description: "Wait, then write a text file.",
    schema: object({ seconds: { type: "number" }, path: text, content: text }),
    run: async (it) => {
      await new Promise((done) => setTimeout(done, it.seconds * 1000));
      fs.writeFileSync(it.path, it.content);
      return "written";
    },
  },
];

if (options.media) {
  const words = { take_photo: "A photo.", get_paper: "A paper." };
  for (const [name, said] of Object.entries(words)) {
    own.push({ name, description: said, schema: object({}), run: () => said });
  }
}

// Tools of an MCP server on standard input and output.
async function served([program, ...args]) {
  const server = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  server.unref();
  const lines = createInterface(server.stdout)[Symbol.asyncIterator]();
  const ask = async (method, params) => {
    server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) + "\n");
    return JSON.parse((await lines.next()).value).result;
  };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "lab", version: "1" } });
  // Sequential: answers come in the order of requests.
  let last = Promise.resolve();
  const call = (name, input) => (last = last.then(() => ask("tools/call", { name, arguments: input })));
  return (await ask("tools/list", {})).tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    schema: inputSchema,
    run: async (input) => (await call(name, input)).content[0].text,
  }));
}

export const tools = options.tools === "no" ? [] : options.mcp ? await served(JSON.parse(options.mcp)) : own;

// Runs a tool; returns its text, and whether it failed.
export async function run(name, input) {
  try {
    const tool = tools.find((it) => it.name === name);
    return [await tool.run(input ?? {}), false];
  } catch (error) {
    return [String(error), true];
  }
}

// Runs a program; prints errors as a user would see them.
export async function main(program) {
  try {
    console.log(JSON.stringify({ text: await program() }));
  } catch (error) {
    console.log(JSON.stringify({ error: `${error?.name}: ${error?.message}`.slice(0, 600) }));
    process.exitCode = 1;
  }
  // A running tool server would keep the process alive.
  process.exit();
}
