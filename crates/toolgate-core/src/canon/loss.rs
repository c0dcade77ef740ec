//! Losses: facts that could not be carried over, or were changed on the way.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::brief;
use crate::json::Path;

/// Maximum number of losses of one list that are kept with their text. A code that is not among
/// them yet is kept once more.
pub const MAX_LOSSES: usize = 256;

/// Maximum bytes of each text of a kept loss, about; the middle of a longer one is cut out.
pub const MAX_LOSS_TEXT: usize = 1024;

/// Losses in the order they were met.
///
/// The first [`MAX_LOSSES`] are kept, the others are counted by their code: a body of unknown
/// fields holds no more memory than its first few hundred.
///
/// ```
/// use toolgate_core::canon::{LossCode, Losses, MAX_LOSSES};
/// use toolgate_core::json::Path;
/// let mut losses = Losses::new();
/// for index in 0..1000 {
///     losses.add(&Path::Root.index(index), LossCode::Ignored, "no equivalent");
/// }
/// assert_eq!((losses.len(), losses.total()), (MAX_LOSSES, 1000));
/// assert!(losses.omitted().eq([(LossCode::Ignored, 1000 - MAX_LOSSES)]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    kept: Vec<Loss>,
    omitted: BTreeMap<LossCode, usize>,
}

/// A fact that the other side does not get as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Where: a path in the client's body (`tools[3].input_schema.properties.a`) or in the
    /// model's answer (`calls[0].args.count`).
    pub at: String,
    /// Type of loss.
    pub code: LossCode,
    /// Description for a person.
    pub detail: String,
    /// The tool that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl Losses {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a loss at `at`. Its texts are only written if the loss is kept.
    pub fn add(&mut self, at: &Path<'_>, code: LossCode, detail: impl Display) {
        self.add_with(code, || at.loss(code, detail.to_string()));
    }

    /// Adds the loss that `loss` builds, which has the code `code`. It is only built if it is
    /// kept.
    pub fn add_with(&mut self, code: LossCode, loss: impl FnOnce() -> Loss) {
        if self.has_room_for(code) {
            self.keep(loss());
        } else {
            *self.omitted.entry(code).or_default() += 1;
        }
    }

    /// Adds a loss.
    pub fn push(&mut self, loss: Loss) {
        self.add_with(loss.code, || loss);
    }

    /// Adds a loss that is kept even if the list is full. Only for losses that are as few as
    /// things that are held anyway, such as one for each call of an answer.
    pub(crate) fn keep(&mut self, mut loss: Loss) {
        for text in [Some(&mut loss.at), Some(&mut loss.detail), loss.tool.as_mut()] {
            if let Some(text) = text.filter(|text| text.len() > MAX_LOSS_TEXT) {
                *text = brief(text, MAX_LOSS_TEXT).into_owned();
            }
        }
        self.kept.push(loss);
    }

    /// Whether a loss with this code would be kept.
    pub(crate) fn has_room_for(&self, code: LossCode) -> bool {
        self.kept.len() < MAX_LOSSES
            || (!self.omitted.contains_key(&code) && self.kept.iter().all(|it| it.code != code))
    }

    /// Counts losses that are not kept.
    pub(crate) fn omit(&mut self, code: LossCode, count: usize) {
        if count > 0 {
            *self.omitted.entry(code).or_default() += count;
        }
    }

    /// Adds the losses of another list, its omitted ones included.
    pub fn extend(&mut self, more: impl Into<Self>) {
        let Self { kept, omitted } = more.into();
        if self.kept.is_empty() {
            self.kept = kept;
        } else {
            kept.into_iter().for_each(|loss| self.push(loss));
        }
        omitted.into_iter().for_each(|(code, count)| self.omit(code, count));
    }

    /// Adds the losses of another list as `shown` shows them, its omitted ones included.
    pub fn extend_as(&mut self, more: &Self, shown: impl Fn(&Loss) -> Loss) {
        for loss in more {
            self.add_with(loss.code, || shown(loss));
        }
        more.omitted().for_each(|(code, count)| self.omit(code, count));
    }

    /// Moves the losses of another list to the end of this one.
    pub fn append(&mut self, more: &mut Self) {
        self.extend(std::mem::take(more));
    }

    /// Number of losses, kept or not.
    pub fn total(&self) -> usize {
        self.kept.len() + self.omitted.values().sum::<usize>()
    }

    /// The losses that are not kept: how many of each code.
    pub fn omitted(&self) -> impl Iterator<Item = (LossCode, usize)> {
        self.omitted.iter().map(|(code, count)| (*code, *count))
    }

    /// Forgets all losses with this code.
    pub fn remove_code(&mut self, code: LossCode) {
        self.kept.retain(|loss| loss.code != code);
        self.omitted.remove(&code);
    }

    /// Forgets all losses.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The kept losses, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Loss> {
        self.kept.iter_mut()
    }

    /// The kept losses.
    pub fn into_kept(self) -> Vec<Loss> {
        self.kept
    }
}

/// The kept losses.
impl Deref for Losses {
    type Target = [Loss];

    fn deref(&self) -> &[Loss] {
        &self.kept
    }
}

impl<'l> IntoIterator for &'l Losses {
    type Item = &'l Loss;
    type IntoIter = std::slice::Iter<'l, Loss>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl<'l> IntoIterator for &'l mut Losses {
    type Item = &'l mut Loss;
    type IntoIter = std::slice::IterMut<'l, Loss>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter_mut()
    }
}

impl FromIterator<Loss> for Losses {
    fn from_iter<I: IntoIterator<Item = Loss>>(losses: I) -> Self {
        let mut all = Self::new();
        losses.into_iter().for_each(|loss| all.push(loss));
        all
    }
}

impl From<Vec<Loss>> for Losses {
    fn from(losses: Vec<Loss>) -> Self {
        losses.into_iter().collect()
    }
}

impl From<Option<Loss>> for Losses {
    fn from(loss: Option<Loss>) -> Self {
        loss.into_iter().collect()
    }
}

/// A list of the kept losses.
impl Serialize for Losses {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.kept.serialize(to)
    }
}

impl Loss {
    /// Which call of the model's answer it is about, and the rest of the place: `calls[2].args.a`.
    pub fn call(&self) -> Option<(usize, &str)> {
        let (number, rest) = self.at.strip_prefix("calls[")?.split_once(']')?;
        Some((number.parse().ok()?, rest))
    }
}

/// Type of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCode {
    /// An argument of a call was mended to fit the tool's schema.
    ArgumentRepaired,
    /// The arguments of a call would take too long to be compared with the tool's schema; they were
    /// passed on as they are.
    ArgumentUnchecked,
    /// An argument of a call does not fit the tool's schema and could not be mended.
    ArgumentViolation,
    /// The model wrote a call as text instead of calling; it was passed on as text.
    CallAsText,
    /// A call was left out of the answer.
    CallDropped,
    /// A value was changed to one that the target accepts.
    Changed,
    /// A signature of another vendor or model was left out.
    ForeignSignature,
    /// The field is known but means nothing to the target.
    Ignored,
    /// A call has no result in the conversation; an error result was put in.
    MissingResult,
    /// A tool goes by another name upstream.
    NameAliased,
    /// The model wrote a tool's name differently; it was mended.
    NameRepaired,
    /// A result has no call in the conversation; it was kept as text.
    OrphanResult,
    /// A part of a turn cannot be said to the target.
    PartDropped,
    /// A call has no signature; Google's placeholder was sent.
    PlaceholderSignature,
    /// A schema keyword could not be kept as it is.
    SchemaKeyword,
    /// A tool was left out.
    ToolDropped,
    /// A field that this version does not know.
    UnknownField,
    /// The model called a tool that was not declared.
    UnknownTool,
}
