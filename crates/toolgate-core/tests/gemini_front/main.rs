//! Gemini as clients speak it: requests in, answers out.
#![cfg(test)]

mod decode;
mod encode;
