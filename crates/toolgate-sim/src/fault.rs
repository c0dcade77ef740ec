//! Injected faults, as data.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_validate::{GoogleError, Request};

use crate::encode::SeededRng;
use crate::errors;
use crate::plan::{Plan, SSE, Step};
use crate::turn::{Item, ItemKind, Turn};

/// A fault of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error instead of an answer.
    Status {
        /// The HTTP status.
        code: u16,
        /// The message; Google's usual text if empty.
        #[serde(default)]
        message: String,
        /// `RetryInfo.retryDelay`, as `47s`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<String>,
        /// Period of the quota: `Minute` or `Day`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quota: Option<String>,
        /// An HTML page instead of JSON, as proxies send it.
        #[serde(default)]
        html: bool,
    },
    /// A delay before the status.
    Delay {
        /// Duration in milliseconds.
        ms: u64,
    },
    /// A pause in the stream, or a stream that never continues.
    Stall {
        /// Chunks before the pause.
        #[serde(default)]
        after: usize,
        /// Duration in milliseconds; without it, the stream never continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    },
    /// A truncated body.
    Cut {
        /// Bytes before the end.
        after: usize,
    },
    /// A connection reset; with `after = 0`, before the status.
    Reset {
        /// Bytes before the reset.
        #[serde(default)]
        after: usize,
    },
    /// A body that arrives in pieces of this size.
    Split {
        /// Bytes per piece.
        #[serde(default = "one")]
        size: usize,
    },
    /// A delay before every chunk.
    Trickle {
        /// Duration in milliseconds.
        ms: u64,
    },
    /// An error within a stream. A unary call gets it as the whole answer.
    MidStream {
        /// Chunks before the error.
        after: usize,
        /// The status in the error.
        #[serde(default = "overloaded")]
        code: u16,
        /// The message; Google's usual text if empty.
        #[serde(default)]
        message: String,
        /// Whether the error is in a `data:` frame; otherwise it is bare, indented JSON.
        #[serde(default)]
        framed: bool,
    },
    /// A malformed function call.
    MalformedCall,
    /// A call of an undeclared function.
    UnexpectedCall,
    /// An empty turn.
    EmptyStop,
    /// A turn of thoughts only.
    ThinkingOnly,
    /// An answer stopped for safety.
    Safety,
    /// A blocked prompt.
    BlockedPrompt,
    /// A token limit reached within a call.
    MaxTokensInCall,
    /// Any finish reason, after the turn's items.
    Finish {
        /// The reason.
        reason: String,
    },
}

fn one() -> usize {
    1
}

fn overloaded() -> u16 {
    503
}

/// A fault with the requests that it applies to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The fault.
    pub fault: Fault,
    /// The requests.
    #[serde(default)]
    pub when: When,
}

/// Requests that a fault applies to. Requests to models are counted from 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// All requests.
    #[default]
    Always,
    /// These requests.
    Requests(Vec<u64>),
    /// Every n-th request.
    Every(u64),
    /// Each request with this probability, drawn from the simulator's seed.
    Probability(f64),
}

impl When {
    /// Whether the fault applies to this request.
    pub(crate) fn applies_to(&self, request: u64, seed: u64, rule: usize) -> bool {
        match self {
            Self::Always => true,
            Self::Requests(numbers) => numbers.contains(&request),
            Self::Every(n) => *n > 0 && request.is_multiple_of(*n),
            Self::Probability(probability) => {
                let rule = u64::try_from(rule).unwrap_or(0);
                let mut rng = SeededRng::new(seed ^ 0xFA17, request ^ (rule << 48));
                #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
                let drawn = (rng.draw() >> 11) as f64 / (1_u64 << 53) as f64;
                drawn < *probability
            }
        }
    }
}

impl Fault {
    /// Error that replaces the answer: a Google error, or the status of an HTML page. On a unary call,
    /// a mid-stream fault is such an error too.
    pub(crate) fn error(&self, model: &str, is_stream: bool) -> Option<Result<GoogleError, u16>> {
        if let (Self::MidStream { code, message, .. }, false) = (self, is_stream) {
            return Some(Ok(errors::error(*code, message)));
        }
        let Self::Status { code, message, retry_after, quota, html } = self else { return None };
        if *html {
            return Some(Err(*code));
        }
        let mut error = match (code, quota) {
            (429, per) => {
                let retry = retry_after.as_deref().unwrap_or("47s");
                errors::quota(message, per.as_deref().unwrap_or("Minute"), model, retry)
            }
            _ => errors::error(*code, message),
        };
        if let (true, Some(retry)) = (*code != 429, retry_after) {
            let kind = "type.googleapis.com/google.rpc.RetryInfo";
            error.details.push(json!({"@type": kind, "retryDelay": retry}));
        }
        Some(Ok(error))
    }

    /// Changes the model's turn.
    pub(crate) fn apply_to_turn(&self, turn: &mut Turn, request: &Request) {
        let name = request.functions.first().map_or("lookup", |function| &function.name);
        let keep_thoughts = |turn: &mut Turn| {
            turn.items.retain(|item| matches!(item.kind, ItemKind::Thought(_)));
        };
        match self {
            Self::MalformedCall => {
                keep_thoughts(turn);
                turn.finish = Some("MALFORMED_FUNCTION_CALL".to_owned());
                turn.finish_message =
                    Some(format!("Malformed function call: print(default_api.{name}(x=[1, 2)))"));
            }
            Self::UnexpectedCall => {
                keep_thoughts(turn);
                turn.finish = Some("UNEXPECTED_TOOL_CALL".to_owned());
                turn.finish_message = Some(
                    "Unexpected tool call: Model tried to call an undeclared function: list_files"
                        .to_owned(),
                );
            }
            Self::EmptyStop => *turn = Turn { delay: turn.delay, ..Turn::default() },
            Self::ThinkingOnly => {
                keep_thoughts(turn);
                if turn.items.is_empty() {
                    let thought = "**Considering**\n\nI am weighing what to say.\n\n\n";
                    turn.items.push(ItemKind::Thought(thought.to_owned()).into());
                }
            }
            Self::Safety => {
                turn.items.clear();
                turn.finish = Some("SAFETY".to_owned());
                turn.candidate.insert(
                    "safetyRatings".to_owned(),
                    json!([{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true}]),
                );
            }
            Self::BlockedPrompt => turn.blocked = Some("PROHIBITED_CONTENT".to_owned()),
            Self::MaxTokensInCall => {
                // Google sends a call completely or not at all, so only the items beside it remain.
                turn.items.retain(|item: &Item| !matches!(item.kind, ItemKind::Call { .. }));
                turn.finish = Some("MAX_TOKENS".to_owned());
            }
            Self::Finish { reason } => turn.finish = Some(reason.clone()),
            Self::Status { .. }
            | Self::Delay { .. }
            | Self::Stall { .. }
            | Self::Cut { .. }
            | Self::Reset { .. }
            | Self::Split { .. }
            | Self::Trickle { .. }
            | Self::MidStream { .. } => {}
        }
    }

    /// Changes the transfer of the answer.
    pub(crate) fn apply_to_plan(&self, plan: &mut Plan) {
        match self {
            Self::Delay { ms } => plan.delay += Duration::from_millis(*ms),
            Self::Stall { after, ms } => {
                let step = ms.map_or(Step::Stall, |ms| Step::Wait(Duration::from_millis(ms)));
                let at = after_chunks(&plan.steps, *after);
                plan.steps.insert(at, step);
            }
            Self::Cut { after } => plan.steps = cut(&plan.steps, *after),
            Self::Reset { after: 0 } => plan.refuses_connection = true,
            Self::Reset { after } => {
                plan.steps = cut(&plan.steps, *after);
                plan.steps.extend([Step::Wait(Duration::from_millis(5)), Step::Reset]);
            }
            Self::Split { size } => plan.steps = split(&plan.steps, (*size).max(1)),
            Self::Trickle { ms } => {
                let wait = Step::Wait(Duration::from_millis(*ms));
                let steps = std::mem::take(&mut plan.steps);
                plan.steps = steps.into_iter().flat_map(|step| [wait.clone(), step]).collect();
            }
            // On a unary call, `error` has made it the whole answer.
            Self::MidStream { .. } if plan.status != 200 => {}
            Self::MidStream { after, code, message, framed } => {
                let error = errors::error(*code, message);
                let bytes = if plan.content_type != SSE {
                    let before = if *after == 0 { "[" } else { ",\r\n" };
                    format!("{before}{}\n]\n", error.to_json()).into_bytes()
                } else if *framed {
                    format!("data: {}\r\n\r\n", error.to_json()).into_bytes()
                } else {
                    error.to_body()
                };
                plan.steps.truncate(after_chunks(&plan.steps, *after));
                plan.steps.push(Step::Send(bytes.into()));
            }
            Self::Status { .. }
            | Self::MalformedCall
            | Self::UnexpectedCall
            | Self::EmptyStop
            | Self::ThinkingOnly
            | Self::Safety
            | Self::BlockedPrompt
            | Self::MaxTokensInCall
            | Self::Finish { .. } => {}
        }
    }
}

/// Index of the step after this number of chunks.
fn after_chunks(steps: &[Step], chunks: usize) -> usize {
    let sends = steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::Send(_)));
    match chunks.checked_sub(1) {
        None => 0,
        Some(last) => sends.map(|(at, _)| at + 1).nth(last).unwrap_or(steps.len()),
    }
}

fn cut(steps: &[Step], mut left: usize) -> Vec<Step> {
    let mut out = Vec::new();
    for step in steps {
        let Step::Send(bytes) = step else {
            out.push(step.clone());
            continue;
        };
        let length = bytes.len().min(left);
        out.push(Step::Send(bytes.slice(..length)));
        left -= length;
        if left == 0 {
            break;
        }
    }
    // The flush makes the body chunked; a single piece would get a Content-Length.
    out.push(Step::Flush);
    out
}

fn split(steps: &[Step], size: usize) -> Vec<Step> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Send(bytes) => {
                for at in (0..bytes.len()).step_by(size) {
                    let piece: Bytes = bytes.slice(at..bytes.len().min(at + size));
                    out.extend([Step::Send(piece), Step::Flush]);
                }
            }
            Step::Flush | Step::Wait(_) | Step::Stall | Step::Reset => out.push(step.clone()),
        }
    }
    out
}
