// Google's ADK for JavaScript: an agent in memory, on the Gemini API.

import { key, load, main, model, run, streams, tools, turns, url } from "./toolbox.mjs";

Object.assign(process.env, { GOOGLE_GEMINI_BASE_URL: url, GOOGLE_API_KEY: key, GEMINI_API_KEY: key });
const adk = await load("@google/adk");

const upper = (schema) => {
  const out = { ...schema, type: schema.type.toUpperCase() };
  delete out.additionalProperties;
  if (schema.properties) {
    out.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, it]) => [name, upper(it)]));
  }
  return out;
};

async function program() {
  const declared = tools.map(
    (it) =>
      new adk.FunctionTool({
        name: it.name,
        description: it.description,
        parameters: upper(it.schema),
        execute: async (input) => {
          const [text, failed] = await run(it.name, input);
          return failed ? { error: text } : { result: text };
        },
      }),
  );
  const agent = new adk.LlmAgent({ name: "lab", model: model(0), tools: declared });
  const runner = new adk.InMemoryRunner({ agent, appName: "lab" });
  const place = await runner.sessionService.createSession({ appName: "lab", userId: "user" });
  let text = "";
  for (const prompt of turns) {
    const newMessage = { role: "user", parts: [{ text: prompt }] };
    const runConfig = { streamingMode: streams ? adk.StreamingMode.SSE : adk.StreamingMode.NONE };
    for await (const event of runner.runAsync({ userId: "user", sessionId: place.id, newMessage, runConfig })) {
      if (event.errorCode) throw new Error(`${event.errorCode}: ${event.errorMessage}`);
      const parts = event.content?.parts ?? [];
      if (adk.isFinalResponse(event) && !event.partial && parts.length) {
        text = parts.map((it) => (it.thought ? "" : (it.text ?? ""))).join("");
      }
    }
  }
  return text;
}

await main(program);
