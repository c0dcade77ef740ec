// @anthropic-ai/sdk: the tool runner in a thread, ten steps, streamed or not.

import assert from "node:assert/strict";
import { first as model, key, load, main, options, prompt, url } from "./toolbox.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });

async function program() {
  const taken = [];
  const step = {
    type: "custom",
    name: "step",
    description: "Take a step.",
    input_schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    parse: (input) => input,
    run: ({ n }) => {
      taken.push(n);
      return `step ${n} is taken`;
    },
  };
  const runner = client.beta.messages.toolRunner({
    model,
    max_tokens: 8192,
    system: "Take the steps in order.",
    messages: [{ role: "user", content: prompt }],
    tools: [step],
    stream: options.stream === "yes",
  });
  let last;
  for await (const message of runner) {
    last = options.stream === "yes" ? await message.finalMessage() : message;
  }
  assert.deepEqual(taken, [...Array(10).keys()]);
  return last.content.at(-1).text;
}

await main(program);
