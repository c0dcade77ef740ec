//! JSON, kept as it was written.
//!
//! Mirrors of vendors' bodies are serde structs whose strings and values are [`Text`] and [`Raw`]:
//! slices of the body. [`read`] fills a mirror, reports every field that the mirror does not have,
//! and names the path of a known field that cannot be read. [`mod@write`] puts JSON into a buffer.
//!
//! This module knows nothing of conversations: [`canon`](crate::canon) turns [`ReadError`]s into
//! errors of a request and unknown fields into losses.

mod cursor;
mod de;
mod error;
mod raw;
mod read;
mod scan;
mod text;
pub mod write;

pub use cursor::{Cursor, Slice};
pub(crate) use de::Placed;
pub use error::{Problem, ReadError};
pub(crate) use raw::CowStr;
pub use raw::{Fields, Kind, Raw};
pub(crate) use read::read_placed;
pub use read::{Path, UnknownFields, look, parse, read};
pub use text::Text;

/// Element of a list whose mirror is large. In a box of its own: a list that grows would otherwise
/// take three times the memory of its elements.
pub(crate) type Element<T> = Box<T>;
