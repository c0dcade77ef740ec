// @anthropic-ai/sdk: Messages by hand, or its tool runner.

import { key, load, main, model, most, options, prompt, run, tools, url } from "./toolbox.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL: url, apiKey: key });
const declared = tools.map((it) => ({ name: it.name, description: it.description, input_schema: it.schema }));

async function byHand() {
  const messages = [{ role: "user", content: prompt }];
  const thinking = { type: "enabled", budget_tokens: 2048 };
  for (let at = 0; at < most; at++) {
    const question = { model, max_tokens: 8192, messages, tools: declared, thinking };
    const message = await client.messages.stream(question).finalMessage();
    messages.push({ role: "assistant", content: message.content });
    const calls = message.content.filter((it) => it.type === "tool_use");
    if (message.stop_reason === "refusal") throw new Error("refused");
    if (!calls.length) return message.content.at(-1).text;
    const content = [];
    for (const call of calls.reverse()) {
      const [text, failed] = await run(call.name, call.input);
      content.push({ type: "tool_result", tool_use_id: call.id, content: text, is_error: failed });
    }
    messages.push({ role: "user", content });
  }
  throw new Error("it does not end");
}

async function byRunner() {
  const runnable = declared.map((it, at) => ({
    ...it,
    type: "custom",
    run: (input) => tools[at].run(input),
    parse: (input) => input,
  }));
  const messages = [{ role: "user", content: prompt }];
  const runner = client.beta.messages.toolRunner({ model, max_tokens: 8192, messages, tools: runnable });
  const message = await runner.runUntilDone();
  if (message.stop_reason === "refusal") throw new Error("refused");
  return message.content.at(-1).text;
}

await main(options.calls === "runner" ? byRunner : byHand);
