// openai: Responses with the strict stream helper, Chat Completions with its helper or runTools.

import { forced, format, key, load, main, media, model, most, options, prompt, run, streams, strict, tools, url } from "./toolbox.mjs";

const { default: OpenAI } = await load("openai");
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
const functions = tools.map((it) => ({ name: it.name, description: it.description, parameters: it.schema }));
const report = { name: "report", schema: format, strict: true };

async function answered(call) {
  let [output] = await run(call.name, JSON.parse(call.arguments));
  if (media[call.name]) {
    const [mime, data] = media[call.name];
    const url = `data:${mime};base64,${data}`;
    const part = mime.startsWith("image/")
      ? { type: "input_image", image_url: url }
      : { type: "input_file", filename: "paper.pdf", file_data: url };
    output = [{ type: "input_text", text: output }, part];
  }
  return { type: "function_call_output", call_id: call.call_id, output };
}

async function responses() {
  const input = [{ role: "user", content: prompt }];
  const declared = functions.map((it) => ({ type: "function", strict, ...it }));
  if (options.search) declared.push({ type: "web_search" });
  const kept = { store: false, include: ["reasoning.encrypted_content"] };
  if (declared.length) kept.tools = declared;
  if (options.format) kept.text = { format: { type: "json_schema", ...report } };
  for (let at = 0; at < most; at++) {
    const now = forced(at) ? { tool_choice: { type: "function", name: forced(at) } } : {};
    const question = { model: model(at), input, ...kept, ...now };
    const response = streams
      ? await client.responses.stream(question).finalResponse()
      : await client.responses.create(question);
    input.push(...response.output);
    const calls = response.output.filter((it) => it.type === "function_call");
    if (!calls.length) {
      if (response.status !== "completed") throw new Error(response.status);
      const said = response.output.filter((it) => it.type === "message").flatMap((it) => it.content);
      if (said.some((it) => it.type === "refusal")) throw new Error("refused");
      const cited = said.flatMap((it) => it.annotations ?? []);
      return cited.length ? `${response.output_text} [${cited.length} cited]` : response.output_text;
    }
    input.push(...(await Promise.all(calls.map(answered))));
  }
  throw new Error("it does not end");
}

async function chat() {
  const messages = [{ role: "user", content: prompt }];
  const declared = functions.map((it) => ({ type: "function", function: { ...it, strict } }));
  const more = declared.length ? { tools: declared } : {};
  if (options.format) more.response_format = { type: "json_schema", json_schema: report };
  for (let at = 0; at < most; at++) {
    const now = forced(at) ? { tool_choice: { type: "function", function: { name: forced(at) } } } : {};
    const question = { model: model(at), messages, ...more, ...now };
    const completion = streams
      ? await client.chat.completions.stream(question).finalChatCompletion()
      : await client.chat.completions.create(question);
    const { message, finish_reason } = completion.choices[0];
    messages.push(message);
    if (finish_reason === "content_filter") throw new Error("filtered");
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
    // The SDK rethrows errors of a function.
    function: { ...it, parse: JSON.parse, function: async (input) => (await run(tools[at].name, input))[0] },
  }));
  const messages = [{ role: "user", content: prompt }];
  const question = { model: model(0), messages, tools: runnable, stream: true };
  const runner = client.chat.completions.runTools(question, { maxChatCompletions: most });
  return await runner.finalContent();
}

await main({ responses, chat, runTools }[options.api]);
