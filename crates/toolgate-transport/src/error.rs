//! Errors of connections and requests.

use std::error::Error as StdError;
use std::fmt;

use hyper_util::client::legacy;
use toolgate_core::canon::{Failure, FailureKind};

/// A connection that could not be opened. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    /// The phase that failed.
    pub kind: ConnectErrorKind,
    /// Host and port of the request; the proxy's for [`ConnectErrorKind::Proxy`].
    pub host: String,
    /// Cause, as the system or the library reports it.
    pub detail: String,
}

/// Phase in which a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// The host name has no address.
    Dns,
    /// The host refused the connection or is unreachable.
    Connect,
    /// The proxy could not be reached, or refused the tunnel.
    Proxy,
    /// The TLS handshake failed, for instance because of an unknown CA.
    Tls,
    /// The connection was not open in time.
    Timeout,
}

impl ConnectErrorKind {
    /// Name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Proxy => "proxy",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, host, detail } = self;
        match kind {
            ConnectErrorKind::Dns => write!(f, "cannot resolve {host}: {detail}"),
            ConnectErrorKind::Connect => write!(f, "cannot connect to {host}: {detail}"),
            ConnectErrorKind::Proxy => write!(f, "no tunnel through the proxy {host}: {detail}"),
            ConnectErrorKind::Tls => write!(f, "TLS handshake with {host} failed: {detail}"),
            ConnectErrorKind::Timeout => write!(f, "no connection to {host}: {detail}"),
        }
    }
}

impl StdError for ConnectError {}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::new(FailureKind::Unreachable, error.to_string())
    }
}

/// Error of a transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection could be opened. Nothing was sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection was lost after it was open.
    #[error("connection lost: {0}")]
    Interrupted(String),
    /// The request cannot be sent as it is.
    #[error("{0}")]
    InvalidRequest(String),
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Connect(error) => error.into(),
            TransportError::Interrupted(_) => Self::new(FailureKind::Cut, error.to_string()),
            TransportError::InvalidRequest(_) => {
                Self::new(FailureKind::InvalidRequest, error.to_string())
            }
        }
    }
}

/// Invalid settings of a connection: a CA file or proxy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

/// Classifies an error of the HTTP client.
impl From<&legacy::Error> for TransportError {
    fn from(error: &legacy::Error) -> Self {
        let connect = error.source().and_then(|cause| cause.downcast_ref::<ConnectError>());
        match connect {
            Some(error) => Self::Connect(error.clone()),
            None => Self::Interrupted(root_cause(error)),
        }
    }
}

/// Text of the innermost cause.
pub(crate) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
