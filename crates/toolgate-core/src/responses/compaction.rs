//! Compaction: a conversation that the client keeps as one sealed summary.
//!
//! ```text
//! input … {"type":"compaction_trigger"}  ─► the model is asked for a summary
//! its words                              ─► {"type":"compaction","encrypted_content":…}
//! the item in a later input              ─► the summary, as the user's words
//! ```

use super::frames::{member, number};
use super::names::Names;
use super::response::write_usage;
use crate::canon::Answer;
use crate::dialect::Stamp;
use crate::json::{Raw, write};
use crate::seal::Sealer;

/// Prompt for the summary, if the input ends in a trigger.
pub(super) const SUMMARY_REQUEST: &str = "\
Write a summary of this conversation for yourself: it will replace everything above, and the work \
goes on from it. Keep what the user asked for, what was decided and why, what was done and found \
out (names of files and commands, exact values, errors), and what is left to do, next step first. \
Write only the summary, as plain text.";

/// A `compaction` item that holds a summary.
pub fn compaction_item(id: &str, summary: &str, sealer: &Sealer) -> Vec<u8> {
    let mut out = b"{".to_vec();
    member(&mut out, "id", id);
    member(&mut out, "type", "compaction");
    member(&mut out, "encrypted_content", &sealer.seal_text(summary));
    out.push(b'}');
    out
}

/// The answer of `POST /v1/responses/compact`: items of the input that are kept as they are (the
/// user's own messages, say), and the answer's words as one `compaction` item.
pub fn encode_compacted(
    answer: &Answer,
    kept: &[Raw<'_>],
    stamp: &Stamp,
    sealer: &Sealer,
) -> Vec<u8> {
    let mut names = Names::new(&mut stamp.ids.clone());
    let mut out = b"{".to_vec();
    member(&mut out, "id", &names.response());
    member(&mut out, "object", "response.compaction");
    number(&mut out, "created_at", stamp.created);
    write::key(&mut out, "output");
    out.push(b'[');
    for item in kept {
        write::comma(&mut out);
        item.write(&mut out);
    }
    write::comma(&mut out);
    out.extend_from_slice(&compaction_item(&names.item("cmp"), &answer.text(), sealer));
    out.push(b']');
    write::key(&mut out, "usage");
    write_usage(&mut out, &answer.finish.usage);
    out.push(b'}');
    out
}
