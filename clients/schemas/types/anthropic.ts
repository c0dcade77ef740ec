// Answers of Anthropic's API, in the types of its SDK. One member per kind of answer.
import type { Message, MessageTokensCount, RawMessageStreamEvent } from "@anthropic-ai/sdk/resources/messages";
import type { BetaMessage, BetaRawMessageStreamEvent } from "@anthropic-ai/sdk/resources/beta/messages";
import type { ModelInfo } from "@anthropic-ai/sdk/resources/models";
import type { ErrorResponse } from "@anthropic-ai/sdk/resources/shared";

export interface Answers {
  body: Message;
  event: RawMessageStreamEvent | { type: "ping" } | ErrorResponse;
  beta_body: BetaMessage;
  beta_event: BetaRawMessageStreamEvent | { type: "ping" } | ErrorResponse;
  error: ErrorResponse;
  count: MessageTokensCount;
  model: ModelInfo;
}
