// @google/genai on the simulator: one check for each documented feature.

import assert from "node:assert/strict";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [url, model] = process.argv.slice(2);
const place = path.join(process.env.LAB_MODULES, "@google", "genai", "dist", "node", "index.mjs");
const { ApiError, FunctionCallingConfigMode, GoogleGenAI } = await import(pathToFileURL(place).href);
const client = new GoogleGenAI({ apiKey: "test-key", httpOptions: { baseUrl: url } });

const parametersJsonSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { name: "get_weather", description: "Current weather in a city", parametersJsonSchema };
const time = { name: "get_time", description: "Current time in a city", parametersJsonSchema };
const declared = [{ functionDeclarations: [weather, time] }];
const ran = [];

// In unary requests the SDK passes every call to every tool.
const callable = (declaration, output) => ({
  tool: async () => ({ functionDeclarations: [declaration] }),
  callTool: async (calls) =>
    calls
      .filter((call) => call.name === declaration.name)
      .map(({ id, name, args }) => {
        ran.push([name, args.city]);
        return { functionResponse: { id, name, response: { output } } };
      }),
});
const tools = () => [callable(weather, "21 degrees"), callable(time, "half past nine")];

const words = (parts) => parts.filter((it) => !it.thought).map((it) => it.text ?? "").join("");
const holds = (text, ...all) => all.forEach((it) => assert.ok(text?.includes(it), `${it} is not in ${text}`));

async function streamed(question) {
  const chunks = [];
  for await (const chunk of await client.models.generateContentStream(question)) chunks.push(chunk);
  return chunks;
}

const partsOf = (chunks) => chunks.flatMap((it) => it.candidates?.[0]?.content?.parts ?? []);

async function manual(ask) {
  const contents = [{ role: "user", parts: [{ text: "What is the weather in Tokyo?" }] }];
  const parts = await ask({ model, contents, config: { tools: declared } });
  const calls = parts.filter((it) => it.functionCall).map((it) => it.functionCall);
  assert.deepEqual(calls.map((it) => [it.name, it.args]), [["get_weather", { city: "Tokyo" }]]);
  const [{ id, name }] = calls;
  contents.push({ role: "model", parts });
  contents.push({ role: "user", parts: [{ functionResponse: { id, name, response: { output: "21 degrees" } } }] });
  holds(words(await ask({ model, contents, config: { tools: declared } })), "21 degrees");
}

const both = [
  ["get_weather", "Lisbon"],
  ["get_time", "Lisbon"],
];
const checks = {
  async plainChat() {
    const chat = client.chats.create({ model });
    const first = await chat.sendMessage({ message: "My name is Ada." });
    holds(first.text, "Ada");
    assert.equal(first.candidates[0].finishReason, "STOP");
    assert.ok(first.usageMetadata.totalTokenCount > first.usageMetadata.promptTokenCount);
    holds((await chat.sendMessage({ message: "What is 12 + 30?" })).text, "42");
    assert.deepEqual(chat.getHistory().map((it) => it.role), ["user", "model", "user", "model"]);
  },
  async stream() {
    const chunks = await streamed({ model, contents: "Tell me about Oslo and Rome." });
    assert.ok(chunks.length > 1, "one chunk is no stream");
    holds(words(partsOf(chunks)), "Oslo and Rome");
    assert.equal(chunks.at(-1).candidates[0].finishReason, "STOP");
    assert.equal(new Set(chunks.map((it) => it.responseId)).size, 1);
    assert.ok(chunks.every((it) => it.usageMetadata.promptTokenCount));
  },
  manualCallingWhole: () => manual(async (question) => partsOf([await client.models.generateContent(question)])),
  manualCallingStreamed: () => manual(async (question) => partsOf(await streamed(question))),
  async automaticCalling() {
    ran.length = 0;
    const question = { model, contents: "Weather and time in Lisbon?", config: { tools: tools() } };
    const response = await client.models.generateContent(question);
    assert.deepEqual(ran, both);
    holds(response.text, "21 degrees", "half past nine");
    const calls = response.automaticFunctionCallingHistory.map((it) => it.parts.filter((part) => part.functionCall).length);
    assert.deepEqual(calls, [0, 2, 0]);
  },
  async automaticCallingStreamed() {
    ran.length = 0;
    const chunks = await streamed({ model, contents: "Weather and time in Lisbon?", config: { tools: tools() } });
    assert.deepEqual(ran, both);
    holds(words(partsOf(chunks)), "21 degrees", "half past nine");
  },
  async modes() {
    const calls = async (mode, contents, allowedFunctionNames) => {
      const functionCallingConfig = { mode: FunctionCallingConfigMode[mode], allowedFunctionNames };
      const config = { tools: declared, toolConfig: { functionCallingConfig } };
      const response = await client.models.generateContent({ model, contents, config });
      return (response.functionCalls ?? []).map((it) => it.name);
    };
    assert.deepEqual(await calls("ANY", "Good morning!", ["get_time"]), ["get_time"]);
    assert.deepEqual(await calls("ANY", "What is the weather in Tokyo?"), ["get_weather"]);
    assert.deepEqual(await calls("AUTO", "Good morning!"), []);
    assert.deepEqual(await calls("NONE", "What is the weather in Tokyo?"), []);
  },
  async countTokens() {
    const count = async (contents) => (await client.models.countTokens({ model, contents })).totalTokens;
    const [few, many] = [await count("Hi"), await count("word ".repeat(100))];
    assert.ok(0 < few && few < many, `${few} ${many}`);
  },
  async listModels() {
    const names = [];
    for await (const it of await client.models.list({ config: { pageSize: 5 } })) names.push(it.name);
    assert.ok(names.includes(`models/${model}`) && names.length > 5, names.join());
    assert.equal((await client.models.get({ model })).name, `models/${model}`);
  },
  async anError() {
    const question = { model: "gemini-none", contents: "Hi" };
    for (const ask of [(it) => client.models.generateContent(it), streamed]) {
      const refused = (error) =>
        error instanceof ApiError && error.status === 404 && error.message.includes("models/gemini-none is not found");
      await assert.rejects(() => ask(question), refused);
    }
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`   ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`   ${name} FAILED\n${error?.stack ?? error}`);
  }
}
