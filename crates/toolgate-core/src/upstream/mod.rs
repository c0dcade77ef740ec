//! APIs of the models, from the client's side of them.
//!
//! An upstream API encodes a [`Request`](crate::canon::Request) and decodes the answer to
//! [`Event`](crate::canon::Event)s. Each has a folder of its own. Rules, names and quirks of an API
//! are known in its folder and nowhere else.

pub mod generate_content;
