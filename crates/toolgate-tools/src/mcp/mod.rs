//! MCP servers as sources: standard streams of a child, or streamable HTTP; both eras of the protocol.

mod connection;
mod http;
mod listing;
mod server;
mod stdio;
mod wire;

pub use connection::Era;
pub(crate) use connection::{Connection, Target};
pub use http::Credentials;
pub use server::McpServer;
