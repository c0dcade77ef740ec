// Answers of OpenAI's APIs, in the types of its SDK. One member per kind of answer.
import type { ChatCompletion, ChatCompletionChunk } from "openai/resources/chat/completions";
import type { Model } from "openai/resources/models";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import type { ErrorObject } from "openai/resources/shared";

export interface Answers {
  responses_body: Response;
  responses_event: ResponseStreamEvent;
  responses_error: { error: ErrorObject };
  chat_body: ChatCompletion;
  chat_event: ChatCompletionChunk | { error: ErrorObject };
  chat_error: { error: ErrorObject };
  model: Model;
}
