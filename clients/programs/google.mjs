// @google/genai: functions called by hand or automatically.

import { key, load, main, model, most, options, prompt, run, tools, url } from "./toolbox.mjs";

const { GoogleGenAI } = await load("@google/genai");
const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
const functionDeclarations = tools.map((it) => ({
  name: it.name,
  description: it.description,
  parametersJsonSchema: it.schema,
}));

async function byHand() {
  const contents = [{ role: "user", parts: [{ text: prompt }] }];
  const config = { tools: [{ functionDeclarations }], thinkingConfig: { includeThoughts: true } };
  for (let at = 0; at < most; at++) {
    const parts = [];
    let finish;
    for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
      parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
      finish = chunk.candidates?.[0]?.finishReason ?? finish;
    }
    contents.push({ role: "model", parts });
    const calls = parts.filter((it) => it.functionCall).map((it) => it.functionCall);
    if (!calls.length) {
      if (!parts.length || !["STOP", "MAX_TOKENS"].includes(finish)) throw new Error(`finished with ${finish}`);
      const counted = await client.models.countTokens({ model, contents });
      if (!counted.totalTokens) throw new Error("nothing counted");
      return parts.filter((it) => !it.thought).map((it) => it.text ?? "").join("");
    }
    const answers = [];
    for (const { id, name, args } of calls) {
      const [text, failed] = await run(name, args);
      const response = failed ? { error: text } : { output: text };
      answers.push({ functionResponse: { id, name, response } });
    }
    contents.push({ role: "user", parts: answers });
  }
  throw new Error("it does not end");
}

async function automatic() {
  const callable = {
    tool: async () => ({ functionDeclarations }),
    callTool: async (calls) => {
      const parts = [];
      for (const { id, name, args } of calls) {
        const [output] = await run(name, args);
        parts.push({ functionResponse: { id, name, response: { output } } });
      }
      return parts;
    },
  };
  const config = { tools: [callable], automaticFunctionCalling: { maximumRemoteCalls: most } };
  const response = await client.models.generateContent({ model, contents: prompt, config });
  return response.text;
}

await main(options.calls === "automatic" ? automatic : byHand);
