// Answers of the Gemini API, in the types of Google's SDK. One member per kind of answer.
import type { CountTokensResponse, GenerateContentResponse } from "@google/genai";

// The SDK has no type for an error's body; this is Google's documented form (google.rpc.Status).
interface Failure {
  error: { code: number; message: string; status: string; details?: { "@type": string; [name: string]: unknown }[] };
}

export interface Answers {
  body: GenerateContentResponse;
  event: GenerateContentResponse | Failure;
  error: Failure;
  count: CountTokensResponse;
}
