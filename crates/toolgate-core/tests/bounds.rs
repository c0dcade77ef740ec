//! What a request may make the core hold and do: bounds that do not depend on what a body says.

#[path = "bounds/bodies.rs"]
mod bodies;
#[path = "bounds/losses.rs"]
mod losses;
