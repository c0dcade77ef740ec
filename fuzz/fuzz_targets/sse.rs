//! Frames do not depend on chunk boundaries.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use toolgate_core::sse::{FrameKind, Reader};

type Frames = Vec<(FrameKind, Vec<u8>, bool)>;

fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<Frames> {
    let mut reader = Reader::with_limit(1 << 16);
    let mut frames = Frames::new();
    let mut take = |frame: toolgate_core::sse::Frame<'_>| {
        frames.push((frame.kind, frame.bytes.to_vec(), frame.whole));
        ControlFlow::Continue(())
    };
    for piece in pieces {
        reader.feed(piece, &mut take).ok()?;
    }
    reader.finish(&mut take).ok()?;
    Some(frames)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let whole = frames(std::iter::once(bytes));
    assert_eq!(frames(bytes.chunks(usize::from(size) + 1)), whole);
    assert_eq!(frames(bytes.chunks(1)), whole);
});
