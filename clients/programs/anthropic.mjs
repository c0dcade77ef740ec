// @anthropic-ai/sdk: Messages by hand, or its tool runner.

import { forced, format, key, load, main, media, model, most, options, prompt, run, streams, tools, url } from "./toolbox.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL: url, apiKey: key });
const declared = tools.map((it) => ({ name: it.name, description: it.description, input_schema: it.schema }));

async function answered(call) {
  const [text, failed] = await run(call.name, call.input);
  let content = text;
  if (media[call.name]) {
    const [media_type, data] = media[call.name];
    const type = media_type.startsWith("image/") ? "image" : "document";
    content = [{ type: "text", text }, { type, source: { type: "base64", media_type, data } }];
  }
  return { type: "tool_result", tool_use_id: call.id, content, is_error: failed };
}

async function byHand() {
  const messages = [{ role: "user", content: prompt }];
  const search = { type: "web_search_20250305", name: "web_search", max_uses: 3 };
  const all = options.search ? [...declared, search] : declared;
  const more = all.length ? { tools: all } : {};
  if (options.format) more.output_config = { format: { type: "json_schema", schema: format } };
  for (let at = 0; at < most; at++) {
    // Vendors refuse thinking together with a forced call.
    const now = forced(at)
      ? { tool_choice: { type: "tool", name: forced(at) } }
      : { thinking: { type: "enabled", budget_tokens: 2048 } };
    const question = { model: model(at), max_tokens: 8192, messages, ...more, ...now };
    const message = streams
      ? await client.messages.stream(question).finalMessage()
      : await client.messages.create(question);
    messages.push({ role: "assistant", content: message.content });
    const calls = message.content.filter((it) => it.type === "tool_use");
    if (message.stop_reason === "refusal") throw new Error("refused");
    if (!calls.length) {
      const counted = await client.messages.countTokens({ model: model(at), messages, ...more });
      if (!counted.input_tokens) throw new Error("nothing counted");
      const found = message.content.filter((it) => it.type === "web_search_tool_result").flatMap((it) => it.content);
      const text = message.content.filter((it) => it.type === "text").map((it) => it.text).join("");
      return found.length ? `${text} [${found.length} cited]` : text;
    }
    messages.push({ role: "user", content: await Promise.all(calls.reverse().map(answered)) });
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
  const runner = client.beta.messages.toolRunner({ model: model(0), max_tokens: 8192, messages, tools: runnable });
  const message = await runner.runUntilDone();
  if (message.stop_reason === "refusal") throw new Error("refused");
  return message.content.at(-1).text;
}

await main(options.calls === "runner" ? byRunner : byHand);
