//! Check of a write-ahead log that an earlier process left.
//!
//! SQLite ignores everything after the first frame of a log whose checksum is wrong. That is right for
//! a transaction that was cut off, and it hides damage: committed transactions after the frame vanish
//! without an error. This check finds them, so that the log is kept and the loss is reported.

use std::path::Path;

use super::files::beside;
use crate::now_millis;

const HEADER_LEN: usize = 32;
const FRAME_HEADER_LEN: usize = 24;
/// First word of a log whose checksums are big-endian. One less: little-endian.
const MAGIC_BIG_ENDIAN: u32 = 0x377f_0683;

/// Copies a log that is damaged in the middle, and logs the loss.
pub(super) fn keep_if_damaged(path: &Path) {
    let log = beside(path, "-wal");
    let Ok(bytes) = std::fs::read(&log) else { return };
    let Some(lost) = lost_commits(&bytes) else { return };
    let aside = beside(&log, &format!(".damaged-{}", now_millis()));
    let copied = std::fs::copy(&log, &aside).map(drop);
    tracing::error!(
        path = %log.display(),
        aside = %aside.display(),
        lost_transactions = lost,
        is_copied = copied.is_ok(),
        "write-ahead log damaged, transactions after the damage are lost; a copy was set aside"
    );
}

/// Number of transactions that SQLite will ignore because a frame before them is damaged; `None`: the
/// log is sound.
fn lost_commits(log: &[u8]) -> Option<usize> {
    let word = |at: usize| -> Option<u32> {
        let bytes = log.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*bytes))
    };
    let magic = word(0)?;
    if magic | 1 != MAGIC_BIG_ENDIAN {
        return None;
    }
    let page_size = word(8)? as usize;
    let salts = log.get(16..24)?;
    let sum = Checksum { is_big_endian: magic == MAGIC_BIG_ENDIAN };
    let header_sum = (word(24)?, word(28)?);
    let is_header_sound = sum.over((0, 0), log.get(..24)?) == header_sum;
    let frame_len = FRAME_HEADER_LEN + page_size;
    let frames = log.get(HEADER_LEN..)?.chunks_exact(frame_len.max(FRAME_HEADER_LEN + 1));
    // Frames of an earlier generation of the log have other salts.
    let frames = frames.take_while(|frame| frame[8..16] == *salts);
    let (mut before, mut is_sound, mut lost) = (header_sum, is_header_sound, 0);
    for (number, frame) in frames.enumerate() {
        let at = HEADER_LEN + number * frame_len;
        let stored = (word(at + 16)?, word(at + 20)?);
        let computed = sum.over(sum.over(before, &frame[..8]), &frame[FRAME_HEADER_LEN..]);
        let was_sound = is_sound;
        is_sound &= computed == stored;
        before = stored;
        // A frame that ends a transaction names the size of the database. Frames that SQLite wrote and
        // rolled back follow the end, but never with such a mark.
        let is_commit = word(at + 4)? != 0;
        // The frame at which the damage begins may have been cut off while it was written.
        if is_commit && !was_sound {
            lost += 1;
        }
    }
    (lost > 0).then_some(lost)
}

/// SQLite's checksum of log frames.
#[derive(Clone, Copy)]
struct Checksum {
    is_big_endian: bool,
}

impl Checksum {
    fn over(self, (mut one, mut two): (u32, u32), bytes: &[u8]) -> (u32, u32) {
        for pair in bytes.as_chunks::<8>().0 {
            let word = |at: usize| {
                let bytes = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if self.is_big_endian {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                }
            };
            one = one.wrapping_add(word(0)).wrapping_add(two);
            two = two.wrapping_add(word(4)).wrapping_add(one);
        }
        (one, two)
    }
}
