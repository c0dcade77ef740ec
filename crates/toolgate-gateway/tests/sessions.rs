//! Sessions: state that a gateway keeps between requests, through real sockets, on the simulator.
#![allow(
    clippy::allow_attributes,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail, and says what it needs in few words"
)]

mod sessions {
    mod ageing;
    mod background;
    mod chains;
    mod compaction;
    mod conversations;
    mod crowded;
    mod deleted;
    mod isolation;
    mod listed;
    mod locked;
    mod mixed;
    mod replicas;
    mod shared;
    mod sockets;
    mod stored;
    mod support;
    mod threads;
}
