//! The repository's own commands: `cargo xtask test`.

fn main() {}
