// The tools of the JavaScript programs, and what they are started with.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

export const [url, model, prompt, ...rest] = process.argv.slice(2);
export const options = Object.fromEntries(rest.map((it) => it.split("=")));
export const key = "test-key";
export const most = 25;

// The packages are not beside this file: it says where they are.
const require = createRequire(path.join(process.env.LAB_MODULES, "..", "lab.js"));
export const load = async (name) => import(pathToFileURL(resolved(name)).href);

function resolved(name) {
  // What a package gives to `import` may differ from what it gives to `require`.
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

export const tools = [
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

// Runs a tool: what it says, and whether it failed.
export async function run(name, input) {
  try {
    const tool = tools.find((it) => it.name === name);
    return [await tool.run(input ?? {}), false];
  } catch (error) {
    return [String(error), true];
  }
}

// Runs a program; what it throws is shown, as its user would see it.
export async function main(program) {
  try {
    console.log(JSON.stringify({ text: await program() }));
  } catch (error) {
    console.log(JSON.stringify({ error: `${error?.name}: ${error?.message}`.slice(0, 600) }));
    process.exitCode = 1;
  }
}
