//! HTTP: sockets, limits, and the way of a request to its endpoint.

mod connection;
mod decompress;
mod origin;
mod request;
mod router;
mod routes;
mod server;

pub(crate) use server::Server;
