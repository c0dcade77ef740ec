//! Sessions through the binary itself: processes that are killed, replicas, stores that go away.
#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail, and says what it needs in few words"
)]

mod sessions {
    mod background;
    mod client;
    mod killed;
    mod process;
    mod signatures;
    mod valkey;
}
