//! The end of an answer, by its last finish reason.

use super::grounding::decode_grounding;
use super::stream::cut;
use super::turn::{CONTINUATION, Turn};
use crate::canon::{Event, Failure, FailureKind, Finish, FinishReason, LossCode, Sink};
use crate::upstream::generate_content::fail::excerpt;

/// Meaning of a finish reason.
enum Meaning {
    Stop,
    Limit,
    Blocked,
    /// The model called a tool that was not declared.
    Unexpected,
    Failure(FailureKind),
    /// A reason that this version does not know.
    Unknown,
}

fn meaning(reason: &str) -> Meaning {
    match reason {
        "STOP" => Meaning::Stop,
        "MAX_TOKENS" | CONTINUATION => Meaning::Limit,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "MODEL_ARMOR" | "ESCALATION" | "NO_IMAGE" => Meaning::Blocked,
        _ if reason.starts_with("IMAGE_") => Meaning::Blocked,
        "UNEXPECTED_TOOL_CALL" => Meaning::Unexpected,
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" => {
            Meaning::Failure(FailureKind::MalformedCall)
        }
        // The request lacks a signature: sending it again does not help.
        "MISSING_THOUGHT_SIGNATURE" => Meaning::Failure(FailureKind::InvalidRequest),
        "OTHER" | "TOO_MANY_TOOL_CALLS" => Meaning::Failure(FailureKind::Internal),
        _ => Meaning::Unknown,
    }
}

impl Turn {
    /// Takes the end of the input.
    pub(super) fn conclude(&mut self, sink: &mut dyn Sink) {
        if let Some(blocked) = self.blocked.take() {
            self.drop_open("the prompt was blocked");
            self.close_with(FinishReason::Blocked(blocked), true, sink);
            return;
        }
        let Some(reason) = self.reason.take() else {
            self.fail(cut(), sink);
            return;
        };
        match meaning(&reason) {
            Meaning::Stop => self.stop(sink),
            Meaning::Limit => {
                self.drop_open("the limit of tokens was reached in the middle of it");
                if self.continuation.is_some() {
                    let detail = "Gemini could have gone on, and was not asked to";
                    let at = "candidates[0].continuationToken".to_owned();
                    self.lose(at, LossCode::Ignored, detail);
                }
                self.close(FinishReason::MaxTokens, sink);
            }
            // A client runs a whole call, however the turn ended: Messages demands it, and clients
            // of the other dialects look for calls before they look at the reason.
            Meaning::Blocked if self.calls > 0 => {
                self.drop_open("the answer was blocked in the middle of it");
                let detail = format!("Gemini ended the turn with {reason} after a whole call");
                self.lose("finishReason".to_owned(), LossCode::Changed, detail);
                self.close(FinishReason::ToolCalls, sink);
            }
            Meaning::Blocked => {
                self.drop_open("the answer was blocked in the middle of it");
                self.close(FinishReason::Blocked(reason), sink);
            }
            // Vertex keeps the call; the tool loop can answer that there is no such tool.
            Meaning::Unexpected if self.calls > 0 => {
                self.drop_open("Gemini gave the turn up in the middle of it");
                let said = self.message.clone().unwrap_or_else(|| reason.clone());
                self.lose("finishReason".to_owned(), LossCode::UnknownTool, excerpt(&said));
                self.close(FinishReason::ToolCalls, sink);
            }
            Meaning::Unexpected => self.fail_with(FailureKind::MalformedCall, reason, sink),
            Meaning::Failure(kind) => self.fail_with(kind, reason, sink),
            // Nothing is missing that could be asked for again. Without content the reason is all
            // that there is to tell.
            Meaning::Unknown if self.calls > 0 || self.has_content => {
                let detail =
                    format!("`{}` is not a reason that this version knows", excerpt(&reason));
                self.lose("finishReason".to_owned(), LossCode::Changed, detail);
                self.stop(sink);
            }
            Meaning::Unknown => self.fail_with(FailureKind::Internal, reason, sink),
        }
    }

    fn stop(&mut self, sink: &mut dyn Sink) {
        self.release(sink);
        if let Some(open) = self.open.take()
            && !open.is_idle()
        {
            if self.calls == 0 {
                let message = "Gemini called a function without naming it";
                self.fail(Failure::new(FailureKind::MalformedCall, message), sink);
                return;
            }
            self.lose("calls".to_owned(), LossCode::CallDropped, "a call without a name");
        }
        if self.calls > 0 {
            self.close(FinishReason::ToolCalls, sink);
        } else if self.has_content {
            self.close(FinishReason::Stop, sink);
        } else {
            let message = "Gemini ended its turn without a word or a call";
            let mut failure = Failure::new(FailureKind::EmptyTurn, message);
            failure.upstream_code = Some("STOP".to_owned());
            self.fail(failure, sink);
        }
    }

    fn close(&mut self, reason: FinishReason, sink: &mut dyn Sink) {
        self.take_back(sink);
        self.close_with(reason, false, sink);
    }

    fn close_with(&mut self, reason: FinishReason, is_prompt_blocked: bool, sink: &mut dyn Sink) {
        for grounding in std::mem::take(&mut self.grounding) {
            sink.event(&Event::Grounding(decode_grounding(grounding)));
        }
        if self.imitation.count > 0 {
            let detail = format!("{} calls written as text", self.imitation.count);
            self.lose("text".to_owned(), LossCode::CallAsText, detail);
        }
        let candidates = self.conclude_others();
        let finish = Finish {
            candidates,
            reason,
            message: self.message.take(),
            is_prompt_blocked,
            metadata: std::mem::take(&mut self.metadata),
            usage: self.spent(),
            losses: std::mem::take(&mut self.losses),
        };
        self.end(&Event::Finish(finish), sink);
    }

    fn fail_with(&mut self, kind: FailureKind, reason: String, sink: &mut dyn Sink) {
        let message = match self.message.as_deref().map(excerpt) {
            Some(said) if !said.is_empty() => {
                format!("Gemini ended its turn with {reason}: {said}")
            }
            Some(_) | None => format!("Gemini ended its turn with {reason}"),
        };
        let mut failure = Failure::new(kind, message);
        failure.upstream_code = Some(reason);
        self.fail(failure, sink);
    }

    /// A call that is not whole is not given on (field case I6).
    fn drop_open(&mut self, why: &str) {
        if let Some(open) = self.open.take()
            && !open.is_idle()
        {
            self.lose_of(
                format!("calls[{}]", self.calls),
                LossCode::CallDropped,
                why,
                Some(open.name().to_owned()),
            );
        }
    }
}
