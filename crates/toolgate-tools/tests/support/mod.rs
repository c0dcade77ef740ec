//! Helpers of the tests.

#![allow(
    dead_code,
    unused_imports,
    clippy::allow_attributes,
    reason = "each test file uses some of them"
)]

mod calls;
pub(crate) mod web;

pub(crate) use calls::{call, call_text, raw, text, wait_until_gone};
