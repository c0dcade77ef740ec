//! The conversation as Gemini will take it.
//!
//! Clients resend histories with gaps: calls without results, results without calls, in any order,
//! split over messages, with other ids than they were given. Gemini wants
//!
//! ```text
//! contents = user+ ( model+ results? user* )*         no empty content, no empty part
//! results  = one user content with one functionResponse per call of the model content before it,
//!            in the order of the calls, and nothing else
//! ```
//!
//! `answers` finds the result of every call, `contents` puts everything in order. Nothing
//! that the client said is dropped to save trouble: a call without a result gets an error for one,
//! a result without a call becomes text, words beside results follow them. Nothing is moved past
//! the model's words: a result that came when the model had spoken again becomes text where it is.

mod answers;
mod contents;
mod raw;
mod scan;
mod steps;

pub(super) use contents::{Content, Conversation, Piece, Rules, Speaker};
pub(super) use raw::{RawPart, camel};
pub(super) use scan::CallSite;
use scan::calls_and_results;
