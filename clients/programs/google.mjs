// @google/genai: functions called by hand or automatically.

import { forced, format, key, load, main, media, model, most, options, prompt, run, streams, tools, url } from "./toolbox.mjs";

const { GoogleGenAI } = await load("@google/genai");
const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
const functionDeclarations = tools.map((it) => ({
  name: it.name,
  description: it.description,
  parametersJsonSchema: it.schema,
}));

async function ask(question) {
  const parts = [];
  let finish;
  const chunks = streams
    ? await client.models.generateContentStream(question)
    : [await client.models.generateContent(question)];
  for await (const chunk of chunks) {
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
    finish = chunk.candidates?.[0]?.finishReason ?? finish;
  }
  return [parts, finish];
}

async function answered({ id, name, args }) {
  const [text, failed] = await run(name, args);
  const answer = { id, name, response: failed ? { error: text } : { output: text } };
  if (media[name]) {
    const [mimeType, data] = media[name];
    answer.parts = [{ inlineData: { mimeType, data } }];
  }
  return { functionResponse: answer };
}

async function byHand() {
  const contents = [{ role: "user", parts: [{ text: prompt }] }];
  const config = { thinkingConfig: { includeThoughts: true } };
  if (tools.length) config.tools = [{ functionDeclarations }];
  if (options.search) {
    config.tools.push({ googleSearch: {} });
    config.toolConfig = { includeServerSideToolInvocations: true };
  }
  if (options.format) Object.assign(config, { responseMimeType: "application/json", responseJsonSchema: format });
  for (let at = 0; at < most; at++) {
    const now = { ...config };
    if (forced(at)) {
      now.toolConfig = { functionCallingConfig: { mode: "ANY", allowedFunctionNames: [forced(at)] } };
    }
    const [parts, finish] = await ask({ model: model(at), contents, config: now });
    contents.push({ role: "model", parts });
    const calls = parts.filter((it) => it.functionCall).map((it) => it.functionCall);
    if (!calls.length) {
      if (!parts.length || !["STOP", "MAX_TOKENS"].includes(finish)) throw new Error(`finished with ${finish}`);
      const counted = await client.models.countTokens({ model: model(at), contents });
      if (!counted.totalTokens) throw new Error("nothing counted");
      const text = parts.filter((it) => !it.thought).map((it) => it.text ?? "").join("");
      if (!text) throw new Error("nothing was said");
      return text;
    }
    contents.push({ role: "user", parts: await Promise.all(calls.map(answered)) });
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
  const response = await client.models.generateContent({ model: model(0), contents: prompt, config });
  const finish = response.candidates?.[0]?.finishReason;
  if (!response.text || !["STOP", "MAX_TOKENS"].includes(finish)) throw new Error(`finished with ${finish}`);
  return response.text;
}

await main(options.calls === "automatic" ? automatic : byHand);
