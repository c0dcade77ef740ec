//! The connection to Google, shared by the gateway and the SDK.
//!
//! ```text
//!   Endpoints ──► URL ──► Connector ──┬─ direct ──────────────┬─► TLS ──► Google
//!   (google.rs)           (connect.rs) └─ proxy, CONNECT ──────┘
//!                              └─► ConnectError: kind and host ──► Failure ──► Retry
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `google` | [`Service`], [`Endpoints`]: hosts, paths and methods |
//! | `connect` | [`Connector`], [`Pool`]: TCP, proxy tunnel, TLS |
//! | `proxy` | [`Proxy`]: `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, or one URL |
//! | `roots` | root certificates: Mozilla's, the system's, a CA file |
//! | `error` | [`ConnectError`], [`TransportError`], [`SetupError`] |
//! | `retry` | [`Retry`]: the failures that may be retried, and the delays |
//! | `exchange`, `client` | [`Transport`], and [`HttpTransport`] on a [`Pool`] |

mod client;
mod connect;
mod error;
mod exchange;
mod google;
mod proxy;
mod retry;
mod roots;

pub use client::HttpTransport;
pub use connect::{Connector, Pool, Settings};
pub use error::{ConnectError, ConnectErrorKind, SetupError, TransportError};
pub use exchange::{Body, Exchange, HttpRequest, HttpResponse, Method, Transport};
pub use google::{CLOUD_PLATFORM_SCOPE, Endpoints, OAUTH_TOKEN_URL, Service, Verb, path_segment};
pub use proxy::Proxy;
pub use retry::{Retry, backoff};
pub use roots::tls_config;
