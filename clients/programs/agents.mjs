// OpenAI Agents JS: its own loop, on Responses or Chat Completions.

import { key, load, main, options, run, streams, tools, turns, url, model } from "./toolbox.mjs";

const agents = await load("@openai/agents");
const { default: OpenAI } = await load("openai");

async function program() {
  agents.setDefaultOpenAIClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: key }));
  agents.setOpenAIAPI(options.api === "chat" ? "chat_completions" : "responses");
  agents.setTracingDisabled(true);
  const declared = tools.map((it) =>
    agents.tool({
      name: it.name,
      description: it.description,
      parameters: it.schema,
      strict: true,
      // The SDK tells the model what was thrown.
      execute: async (input) => {
        const [text, failed] = await run(it.name, input);
        if (failed) throw new Error(text);
        return text;
      },
    }),
  );
  const stored = options.api === "chat" ? {} : { modelSettings: { store: false } };
  const agent = new agents.Agent({ name: "lab", model: model(0), tools: declared, ...stored });
  let history = [];
  let text = "";
  for (const prompt of turns) {
    history.push({ role: "user", content: prompt });
    const result = await agents.run(agent, history, { stream: streams, maxTurns: 25 });
    if (streams) await result.completed;
    history = result.history;
    text = result.finalOutput;
  }
  return text;
}

await main(program);
