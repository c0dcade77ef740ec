// openai: all stored state of the Responses API.

import assert from "node:assert/strict";
import { first as model, key, load, main, url } from "./toolbox.mjs";

const { default: OpenAI } = await load("openai");
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const tool = {
  type: "function",
  name: "get_weather",
  description: "Get weather",
  strict: true,
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};
const ask = (input, more = {}) => client.responses.create({ model, input, ...more });
const gone = (promise) => assert.rejects(async () => await promise, OpenAI.NotFoundError);

async function all(list) {
  const found = [];
  for await (const it of list) found.push(it);
  return found;
}

function result(response, output) {
  const call = response.output.find((it) => it.type === "function_call");
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Oslo" }]);
  return { type: "function_call_output", call_id: call.call_id, output };
}

async function program() {
  // Create, continue by id, branch.
  const first = await ask("My name is Ada.", { metadata: { lab: "state" } });
  const second = await ask("What is my name?", { previous_response_id: first.id });
  assert.equal(second.output_text, "Ada.");
  assert.equal(second.previous_response_id, first.id);
  const third = await ask("Say it backwards.", { previous_response_id: first.id });
  assert.equal(third.output_text, "adA.");

  // A chain of tools by id.
  let asked = await ask("Weather in Oslo?", { tools: [tool] });
  let told = await ask([result(asked, "-3")], { previous_response_id: asked.id, tools: [tool] });
  assert.equal(told.output_text, "It is -3.");

  // A conversation, its tools, its items.
  const note = { type: "message", role: "user", content: "I live in Oslo." };
  const talk = await client.conversations.create({ metadata: { a: "b" }, items: [note] });
  asked = await ask("Weather at home?", { conversation: talk.id, tools: [tool] });
  told = await ask([result(asked, "4")], { conversation: { id: talk.id } });
  assert.equal(told.output_text, "It is 4 at home.");
  assert.deepEqual((await client.conversations.retrieve(talk.id)).metadata, { a: "b" });
  const updated = await client.conversations.update(talk.id, { metadata: { a: "c" } });
  assert.deepEqual(updated.metadata, { a: "c" });
  const items = await all(client.conversations.items.list(talk.id, { order: "asc", limit: 2 }));
  const kinds = items.map((it) => it.type).filter((it) => it !== "reasoning");
  assert.deepEqual(kinds, ["message", "message", "function_call", "function_call_output", "message"]);
  const added = await client.conversations.items.create(talk.id, { items: [{ ...note, content: "Bye." }] });
  const { id } = added.data[0];
  const in_talk = { conversation_id: talk.id };
  assert.equal((await client.conversations.items.retrieve(id, in_talk)).content[0].text, "Bye.");
  await client.conversations.items.delete(id, in_talk);
  await gone(client.conversations.items.retrieve(id, in_talk));
  assert.equal((await client.conversations.delete(talk.id)).deleted, true);
  await gone(client.conversations.retrieve(talk.id));
  await gone(ask("Hello?", { conversation: talk.id }));

  // Retrieve, list the input.
  const again = await client.responses.retrieve(first.id);
  assert.deepEqual([again.id, again.output_text, again.metadata], [first.id, "Hello Ada.", { lab: "state" }]);
  const listed = await all(client.responses.inputItems.list(second.id, { order: "asc" }));
  assert.deepEqual(listed.map((it) => it.content[0].text), ["What is my name?"]);

  // Resume a stream.
  const events = await all(await ask("Tell a story.", { stream: true }));
  const story = events.at(-1).response;
  for (const starting_after of [0, 3, events.length - 2]) {
    const rest = await all(await client.responses.retrieve(story.id, { stream: true, starting_after }));
    assert.deepEqual(rest, events.slice(starting_after + 1));
  }

  // In the background: polled, streamed and resumed, cancelled.
  let later = await ask("Take your time.", { background: true });
  while (["queued", "in_progress"].includes(later.status)) {
    await new Promise((done) => setTimeout(done, 50));
    later = await client.responses.retrieve(later.id);
  }
  assert.deepEqual([later.status, later.output_text], ["completed", "Later."]);
  const seen = [];
  for await (const event of await ask("Take your time again.", { background: true, stream: true })) {
    seen.push(event);
    if (seen.length === 2) break;
  }
  const starting_after = seen.at(-1).sequence_number;
  const rest = await client.responses.retrieve(seen[0].response.id, { stream: true, starting_after });
  seen.push(...(await all(rest)));
  assert.deepEqual(seen.map((it) => it.sequence_number), [...seen.keys()]);
  const message = seen.at(-1).response.output.find((it) => it.type === "message");
  assert.equal(message.content[0].text, "Later again.");
  const never = await ask("Take for ever.", { background: true });
  assert.equal((await client.responses.cancel(never.id)).status, "cancelled");
  assert.equal((await client.responses.retrieve(never.id)).status, "cancelled");

  // Delete; and another key sees nothing.
  const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "another", maxRetries: 0 });
  await gone(stranger.responses.retrieve(second.id));
  await gone(stranger.responses.delete(second.id));
  await client.responses.delete(first.id);
  await gone(client.responses.retrieve(first.id));
  await gone(client.responses.inputItems.list(first.id));
  await gone(ask("Are you there?", { previous_response_id: first.id }));
  return "done";
}

await main(program);
