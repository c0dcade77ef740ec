//! What must outlive a request: signatures, answers, conversations.
//!
//! ```text
//!   owner · kind · id ──► a value            put · get · delete
//!                    └──► a list of values   append · list · delete
//!   owner · map · part ─► ids, and notes of them   put_in · in_parts
//! ```
//!
//! Every entry belongs to the key that made it ([`Owner`](crate::auth::Owner)) and cannot be reached by another. Entries
//! have an age limit, the store has a size limit. Writing never blocks: what is written can be read
//! at once, and [`Store::settle`] waits until it would survive.

mod any;
mod change;
mod home;
mod log;
mod memory;
mod pending;
mod recent;
mod sqlite;
mod sqlite_file;
mod sqlite_read;
mod sqlite_schema;
mod tail;
#[cfg(test)]
mod tests;
mod valkey;
mod valkey_server;

use any::{KEY, Shape, id_in, last_of, map_and_part, owner_of_the_gateway};
pub(crate) use any::{Kind, Listed, Opening, Part, Store, StoreError, Wanted, part_of};
