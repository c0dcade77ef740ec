//! Errors of requests, and failures of answers.

use std::borrow::Cow;
use std::fmt;

/// A request that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", if at.is_empty() { String::new() } else { format!("{at}: ") })]
pub struct BadRequest {
    /// Where in the body, as `messages[2].content[0].type`.
    pub at: String,
    /// Description of the fault.
    pub reason: String,
}

/// Reason why there is no answer, or no complete one. Each dialect maps it to its own error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Type of failure.
    pub kind: FailureKind,
    /// For a person; names the field or the tool at fault where one is.
    pub message: String,
    /// When to try again, in milliseconds, where Gemini said it.
    pub retry_after_ms: Option<u64>,
    /// The HTTP status that Gemini gave, where it gave one.
    pub upstream_status: Option<u16>,
    /// Gemini's own status word (`RESOURCE_EXHAUSTED`) or finish reason, where there is one.
    pub upstream_code: Option<String>,
    /// Google's `ErrorInfo.reason` (`API_KEY_INVALID`), where the error had one.
    pub upstream_reason: Option<String>,
    /// Gemini's error body as it came, for clients that speak Gemini.
    pub upstream_body: Option<String>,
    /// The request was retried already: a client that retries it again only multiplies the attempts.
    pub is_retried: bool,
}

/// Type of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// The key is missing or wrong.
    Authentication,
    /// Money has run out, or billing is not set up. Trying again does not help.
    Billing,
    /// The upstream closed the stream before it finished.
    Cut,
    /// The conversation is longer than the model can read.
    ContextTooLong,
    /// The model ended its turn without text or a call.
    EmptyTurn,
    /// The upstream failed.
    Internal,
    /// The request is wrong.
    InvalidRequest,
    /// The model wrote a call that cannot be read, or called a tool that was not declared.
    MalformedCall,
    /// No such model, or no such thing.
    NotFound,
    /// The upstream is overloaded.
    Overloaded,
    /// The key may not do this.
    Permission,
    /// A quota for a long time (a day) is used up. Trying again soon does not help.
    QuotaExhausted,
    /// Too many requests for now.
    RateLimited,
    /// Not offered here.
    Unsupported,
    /// The upstream took too long, or fell silent.
    Timeout,
    /// The body is too large.
    TooLarge,
    /// No connection: the host has no address, refuses, or fails the TLS handshake. Nothing was sent.
    Unreachable,
    /// The upstream's answer does not follow Gemini's protocol.
    UpstreamProtocol,
}

impl FailureKind {
    /// Whether the same request may succeed when it is sent again soon.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Cut
            | Self::EmptyTurn
            | Self::Internal
            | Self::MalformedCall
            | Self::Overloaded
            | Self::RateLimited
            | Self::Timeout
            | Self::Unreachable
            | Self::UpstreamProtocol => true,
            Self::Authentication
            | Self::Billing
            | Self::ContextTooLong
            | Self::InvalidRequest
            | Self::NotFound
            | Self::Permission
            | Self::QuotaExhausted
            | Self::Unsupported
            | Self::TooLarge => false,
        }
    }
}

impl Failure {
    /// A failure with nothing known but what sort it is.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after_ms: None,
            upstream_status: None,
            upstream_code: None,
            upstream_reason: None,
            upstream_body: None,
            is_retried: false,
        }
    }

    /// `Retry-After` in whole seconds, rounded up.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_ms.map(|ms| ms.div_ceil(1000))
    }
}

/// Of Gemini's body only the length: it may quote the request.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            message,
            retry_after_ms,
            upstream_status,
            upstream_code,
            upstream_reason,
            upstream_body,
            is_retried,
        } = self;
        f.debug_struct("Failure")
            .field("kind", kind)
            .field("message", message)
            .field("retry_after_ms", retry_after_ms)
            .field("upstream_status", upstream_status)
            .field("upstream_code", upstream_code)
            .field("upstream_reason", upstream_reason)
            .field("upstream_body_len", &upstream_body.as_ref().map(String::len))
            .field("is_retried", is_retried)
            .finish()
    }
}

/// Maximum bytes of a path or reason, which may quote the client.
const BRIEF: usize = 240;

impl From<BadRequest> for Failure {
    fn from(BadRequest { at, reason }: BadRequest) -> Self {
        let at = brief(&at, BRIEF).into_owned();
        let reason = brief(&reason, BRIEF).into_owned();
        Self::new(FailureKind::InvalidRequest, BadRequest { at, reason }.to_string())
    }
}

/// A message that has at most about `most` bytes: of a longer one, the beginning and the end.
///
/// ```
/// use toolgate_core::canon::brief;
/// assert_eq!(brief("`x` is not a role", 40), "`x` is not a role");
/// let long = format!("`{}` is not a role", "x".repeat(1000));
/// assert_eq!(brief(&long, 40), "`xxxxxxxxxxxx…xxxxxxxxxxxx` is not a role");
/// ```
pub fn brief(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(most / 3);
    let tail = text.ceil_char_boundary(text.len() - (most - most / 3));
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
}
