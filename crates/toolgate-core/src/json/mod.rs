//! JSON, kept as it was written.
//!
//! Mirrors of vendors' bodies are serde structs whose strings and values are [`Text`] and [`Raw`]:
//! slices of the body. [`read`] fills a mirror, names every field that it does not know, and says
//! where a known field is broken. [`mod@write`] holds the few functions that put JSON into a buffer.

mod cursor;
mod de;
mod raw;
mod read;
mod scan;
mod text;
pub mod write;

pub use cursor::{Cursor, Slice};
pub(crate) use de::Placed;
pub(crate) use raw::Key;
pub use raw::{Fields, Kind, Raw};
pub(crate) use read::read_placed;
pub use read::{Path, look, parse, read};
pub use text::Text;

/// An element of a list whose mirror is large. In a box of its own: a list that grows would
/// otherwise hold three times what its elements take.
pub(crate) type Element<T> = Box<T>;
