// Vercel ai with each of its four providers.

import { key, load, main, model, most, options, prompt, tools, url } from "./toolbox.mjs";

const { streamText, tool, jsonSchema, stepCountIs } = await load("ai");

async function provider() {
  const settings = { baseURL: `${url}/v1`, apiKey: key };
  switch (options.api) {
    case "anthropic":
      return (await load("@ai-sdk/anthropic")).createAnthropic(settings)(model);
    case "responses":
      return (await load("@ai-sdk/openai")).createOpenAI(settings).responses(model);
    case "chat":
      return (await load("@ai-sdk/openai")).createOpenAI(settings).chat(model);
    case "compatible":
      return (await load("@ai-sdk/openai-compatible")).createOpenAICompatible({ name: "gw", ...settings })(model);
    default:
      return (await load("@ai-sdk/google")).createGoogleGenerativeAI({ ...settings, baseURL: `${url}/v1beta` })(model);
  }
}

async function program() {
  const declared = Object.fromEntries(
    tools.map((it) => [
      it.name,
      tool({ description: it.description, inputSchema: jsonSchema(it.schema), execute: it.run }),
    ]),
  );
  let failure;
  const result = streamText({
    model: await provider(),
    prompt,
    tools: declared,
    stopWhen: stepCountIs(most),
    onError: ({ error }) => (failure = error),
    providerOptions: options.store === "no" ? { openai: { store: false } } : {},
  });
  await result.consumeStream();
  if (failure) throw failure;
  return await result.text;
}

await main(program);
