//! Chat Completions: requests in, answers out.
#![cfg(test)]

mod decode;
mod encode;
