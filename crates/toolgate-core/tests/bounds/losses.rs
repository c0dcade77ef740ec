//! Losses: the first are kept, the others counted.

use std::cell::Cell;
use std::fmt;

use toolgate_core::canon::{Loss, LossCode, Losses, MAX_LOSS_TEXT, MAX_LOSSES};
use toolgate_core::json::Path;
use toolgate_core::translate::Dialect;

use crate::bodies::{UNKNOWN, decode, translate};

/// A text that knows how often it was written.
struct Counted<'c>(&'c Cell<usize>);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.set(self.0.get() + 1);
        f.write_str("text")
    }
}

#[test]
fn losses_beyond_the_bound_are_counted_and_never_built() {
    let written = Cell::new(0);
    let mut losses = Losses::new();
    for index in 0..5000 {
        losses.add(&Path::Root.index(index), LossCode::Ignored, Counted(&written));
    }
    assert_eq!((losses.len(), losses.total(), written.get()), (MAX_LOSSES, 5000, MAX_LOSSES));
    losses.add_with(LossCode::Ignored, || unreachable!("the list is full"));

    // A code that the list does not have is named even then, once.
    losses.add(&Path::Root, LossCode::ToolDropped, Counted(&written));
    losses.add(&Path::Root, LossCode::ToolDropped, Counted(&written));
    assert_eq!(losses.last().map(|loss| loss.code), Some(LossCode::ToolDropped));
    assert_eq!((losses.len(), losses.total()), (MAX_LOSSES + 1, 5003));
    let omitted: Vec<_> = losses.omitted().collect();
    assert_eq!(omitted, [(LossCode::Ignored, 4745), (LossCode::ToolDropped, 1)]);

    let mut all = losses.clone();
    all.extend(losses.clone());
    assert_eq!((all.len(), all.total()), (MAX_LOSSES + 1, 10_006));
    let mut moved = Losses::new();
    moved.append(&mut losses);
    assert_eq!((moved.total(), losses.total()), (5003, 0));
    moved.remove_code(LossCode::Ignored);
    assert_eq!(moved.total(), 2);
}

#[test]
fn long_texts_of_losses_are_shortened() {
    let long = || "x".repeat(1_000_000);
    let mut losses = Losses::new();
    let (at, detail, tool) = (long(), long(), Some(long()));
    losses.push(Loss { at, code: LossCode::Changed, detail, tool });
    let kept = losses.first().map(|loss| [loss.at.len(), loss.detail.len()]);
    assert!(kept.is_some_and(|kept| kept.iter().all(|len| *len <= MAX_LOSS_TEXT + 8)), "{kept:?}");
}

#[test]
fn whatever_a_body_repeats_few_losses_are_kept() {
    for shape in &UNKNOWN {
        let body = shape.body(1000);
        let (dialect, name) = (shape.dialect.name(), shape.name);
        let decoded = decode(shape.dialect, &body).unwrap_or_else(|bad| panic!("{name}: {bad}"));
        let encoded = translate(shape.dialect, &body).unwrap_or_else(|bad| panic!("{name}: {bad}"));
        for losses in [&decoded.losses, &encoded.losses] {
            let codes = 17;
            assert!(losses.len() <= MAX_LOSSES + codes, "{dialect}/{name}: {}", losses.len());
        }
        let total = decoded.losses.total() + encoded.losses.total();
        assert!(total >= 1000, "{dialect}/{name}: {total}");
    }
}

/// Losses that are not kept are counted; below the bound nothing changes.
#[test]
fn all_losses_are_named_below_the_bound() {
    let fields: Vec<String> = (0..MAX_LOSSES).map(|number| format!("\"a{number}\":1")).collect();
    let body = format!(r#"{{"model":"m","input":"x",{}}}"#, fields.join(","));
    let losses = decode(Dialect::Responses, &body).unwrap().losses;
    assert_eq!((losses.len(), losses.total()), (MAX_LOSSES, MAX_LOSSES));
    assert_eq!(losses.last().unwrap().at, format!("a{}", MAX_LOSSES - 1));
}
