// Vercel ai with each of its four providers.

import { forced, format, key, load, main, media, model as modelAt, most, options, prompt, streams, tools, url } from "./toolbox.mjs";

const { generateText, streamText, tool, jsonSchema, stepCountIs, Output } = await load("ai");

// Model and web search of each provider, by name.
async function provider() {
  const settings = { baseURL: `${url}/v1`, apiKey: key };
  switch (options.api) {
    case "anthropic": {
      const anthropic = (await load("@ai-sdk/anthropic")).createAnthropic(settings);
      return [anthropic, () => ({ web_search: anthropic.tools.webSearch_20250305({ maxUses: 3 }) })];
    }
    case "responses": {
      const openai = (await load("@ai-sdk/openai")).createOpenAI(settings);
      return [(name) => openai.responses(name), () => ({ web_search: openai.tools.webSearch({}) })];
    }
    case "chat": {
      const openai = (await load("@ai-sdk/openai")).createOpenAI(settings);
      return [(name) => openai.chat(name)];
    }
    case "compatible":
      return [(await load("@ai-sdk/openai-compatible")).createOpenAICompatible({ name: "gw", ...settings })];
    default: {
      const google = (await load("@ai-sdk/google")).createGoogleGenerativeAI({ ...settings, baseURL: `${url}/v1beta` });
      return [google, () => ({ google_search: google.tools.googleSearch({}) })];
    }
  }
}

function declared(it) {
  const made = { description: it.description, inputSchema: jsonSchema(it.schema), execute: it.run };
  if (media[it.name]) {
    const [mediaType, data] = media[it.name];
    const bytes = { type: "file", mediaType, data: { type: "data", data } };
    made.toModelOutput = ({ output }) => ({ type: "content", value: [{ type: "text", text: output }, bytes] });
  }
  return [it.name, tool(made)];
}

async function program() {
  const [named, search] = await provider();
  const all = Object.fromEntries(tools.map(declared));
  let failure;
  const question = {
    model: named(modelAt(0)),
    prompt,
    stopWhen: stepCountIs(most),
    onError: ({ error }) => (failure = error),
    prepareStep: ({ stepNumber }) => ({
      model: named(modelAt(stepNumber)),
      toolChoice: forced(stepNumber) ? { type: "tool", toolName: forced(stepNumber) } : "auto",
    }),
    providerOptions: options.store === "no" ? { openai: { store: false } } : {},
  };
  if (tools.length) question.tools = options.search ? { ...all, ...search() } : all;
  if (options.format) question.output = Output.object({ schema: jsonSchema(format) });
  let result;
  if (streams) {
    result = streamText(question);
    await result.consumeStream();
    if (failure) throw failure;
  } else {
    result = await generateText(question);
  }
  const reason = await result.finishReason;
  if (!["stop", "length"].includes(reason)) throw new Error(`finished with ${reason}`);
  const [text, sources] = [await result.text, await result.sources];
  return sources?.length ? `${text} [${sources.length} cited]` : text;
}

await main(program);
