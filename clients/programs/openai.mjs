// openai: Responses with the strict stream helper, Chat Completions with its helper or runTools.

import { key, load, main, model, most, options, prompt, run, tools, url } from "./toolbox.mjs";

const { default: OpenAI } = await load("openai");
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
const functions = tools.map((it) => ({ name: it.name, description: it.description, parameters: it.schema }));

async function responses() {
  const input = [{ role: "user", content: prompt }];
  const declared = functions.map((it) => ({ type: "function", strict: true, ...it }));
  const kept = { store: false, include: ["reasoning.encrypted_content"] };
  for (let at = 0; at < most; at++) {
    const stream = client.responses.stream({ model, input, tools: declared, ...kept });
    const response = await stream.finalResponse();
    input.push(...response.output);
    const calls = response.output.filter((it) => it.type === "function_call");
    if (!calls.length) {
      if (response.status !== "completed") throw new Error(response.status);
      return response.output_text;
    }
    for (const call of calls) {
      const [output] = await run(call.name, JSON.parse(call.arguments));
      input.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
  throw new Error("it does not end");
}

async function chat() {
  const messages = [{ role: "user", content: prompt }];
  const declared = functions.map((it) => ({ type: "function", function: it }));
  for (let at = 0; at < most; at++) {
    const stream = client.chat.completions.stream({ model, messages, tools: declared });
    const { message } = (await stream.finalChatCompletion()).choices[0];
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const call of message.tool_calls) {
      const [content] = await run(call.function.name, JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
  throw new Error("it does not end");
}

async function runTools() {
  const runnable = functions.map((it, at) => ({
    type: "function",
    function: { ...it, parse: JSON.parse, function: (input) => tools[at].run(input) },
  }));
  const messages = [{ role: "user", content: prompt }];
  const question = { model, messages, tools: runnable, stream: true };
  const runner = client.chat.completions.runTools(question, { maxChatCompletions: most });
  return await runner.finalContent();
}

await main({ responses, chat, runTools }[options.api]);
