//! `cargo xtask house`: crates, modules, lines and imports; fails where a layer imports upward.

mod graph;
mod layers;
mod report;

pub(crate) use report::house;
