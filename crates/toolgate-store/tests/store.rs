//! The contract of stores, and what happens when something under a store fails.
#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail, and says what it needs in few words"
)]

mod store {
    mod contract;
    mod faults;
    mod support;
}
