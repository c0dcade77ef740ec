// mastra: its own loop, with its model router (Chat Completions) or a provider of Vercel ai.

import { key, load, main, model, options, run, streams, tools, turns, url } from "./toolbox.mjs";

const { Agent } = await load("@mastra/core/agent");
const { createTool } = await load("@mastra/core/tools");
const { z } = await load("zod");

async function chosen() {
  if (options.api === "chat") return { id: `toolgate/${model(0)}`, url: `${url}/v1`, apiKey: key };
  const settings = { baseURL: `${url}/v1`, apiKey: key };
  return (await load("@ai-sdk/anthropic")).createAnthropic(settings)(model(0));
}

const shape = (schema) =>
  z.object(
    Object.fromEntries(
      Object.entries(schema.properties).map(([name, it]) => [name, it.type === "number" ? z.number() : z.string()]),
    ),
  );

async function program() {
  const declared = tools.map((it) => [
    it.name,
    createTool({
      id: it.name,
      description: it.description,
      inputSchema: shape(it.schema),
      execute: async (input) => {
        const [text, failed] = await run(it.name, input?.context ?? input);
        if (failed) throw new Error(text);
        return text;
      },
    }),
  ]);
  const agent = new Agent({
    id: "lab",
    name: "lab",
    instructions: "Help in the lab.",
    model: await chosen(),
    tools: Object.fromEntries(declared),
  });
  const messages = [];
  let text = "";
  for (const prompt of turns) {
    messages.push({ role: "user", content: prompt });
    const result = streams
      ? await agent.stream(messages, { maxSteps: 25 })
      : await agent.generate(messages, { maxSteps: 25 });
    if (streams) await result.consumeStream();
    text = await result.text;
    messages.push(...(await result.response).messages);
  }
  return text;
}

await main(program);
