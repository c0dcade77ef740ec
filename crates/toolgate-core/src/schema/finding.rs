//! Changes that the compiler made, with their places.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::tree::{Step, Tree, start};
use crate::canon::{BadRequest, Loss, LossCode, Losses};

/// Maximum number of changes that are listed for one schema; the others are counted.
const MAX_FINDINGS: usize = 100;
/// Maximum length of a name in a path. Many paths may lead through one long name.
const MAX_NAME: usize = 200;
/// Maximum length of a finding's text.
const MAX_DETAIL: usize = 2000;

/// Effect of the compiler on a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// It is said in other words, with the same meaning.
    Rewritten,
    /// The schema no longer says it; the description does.
    Described,
    /// Nothing says it any more.
    Dropped,
    /// It is allowed, but Gemini takes it otherwise, or it says nothing where it stands.
    Adjusted,
    /// The schema is wrong here, or no value fits it; its meaning was guessed.
    Repaired,
    /// Too deep, too large or endless: something that allows more stands there instead.
    Cut,
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) struct Finding<'t> {
    /// The text of the schema that the keyword stands in.
    pub(crate) node: &'t str,
    /// The keyword; empty where the whole schema is meant.
    pub(crate) keyword: Cow<'t, str>,
    pub(crate) effect: Effect,
    /// What happened, for a person.
    pub(crate) detail: String,
    /// What to do about it, where that is not plain.
    pub(crate) help: Option<Cow<'static, str>>,
}

/// Changes in the order they were met, each sort once for a place and keyword.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings<'t> {
    list: Vec<Finding<'t>>,
    seen: BTreeSet<(usize, Cow<'t, str>, Effect)>,
    left_out: usize,
    /// Work done for the schema: schemas visited, merged and compared, names, values, text written.
    pub(crate) work: usize,
    /// The first fault among those that were only counted.
    fault: Option<Box<Finding<'t>>>,
}

impl<'t> Findings<'t> {
    pub(crate) fn push(
        &mut self,
        node: &'t str,
        keyword: impl Into<Cow<'t, str>>,
        effect: Effect,
        detail: impl Into<String>,
    ) {
        self.push_with_help(node, keyword, effect, detail, None);
    }

    pub(crate) fn push_with_help(
        &mut self,
        node: &'t str,
        keyword: impl Into<Cow<'t, str>>,
        effect: Effect,
        detail: impl Into<String>,
        help: Option<Cow<'static, str>>,
    ) {
        let keyword = keyword.into();
        self.work += 1;
        // A schema that is used in several places is read several times.
        if !self.seen.insert((start(node), keyword.clone(), effect)) {
            return;
        }
        let detail = clipped(detail.into());
        let finding = Finding { node, keyword, effect, detail, help };
        if self.list.len() < MAX_FINDINGS {
            self.list.push(finding);
            return;
        }
        self.left_out += 1;
        if finding.is_fault() && self.fault.is_none() {
            self.fault = Some(Box::new(finding));
        }
    }

    /// Puts the changes into the order of the text.
    pub(crate) fn sort(&mut self) {
        self.list.sort_by_key(|finding| start(finding.node));
    }

    /// How many changes are only counted.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    pub(crate) fn list(&self) -> &[Finding<'t>] {
        &self.list
    }

    /// The first thing that makes the client's schema invalid.
    pub(crate) fn first_fault(&self, root: &Tree<'_>) -> Option<BadRequest> {
        let listed = self.list.iter().filter(|finding| finding.is_fault());
        let fault = listed.min_by_key(|finding| start(finding.node)).or(self.fault.as_deref())?;
        // The remedy follows the fault itself.
        let reason = fault.detail.split("; ").next().unwrap_or_default();
        Some(BadRequest { at: fault.at(root), reason: reason.to_owned() })
    }

    pub(crate) fn losses(&self, root: &Tree<'_>) -> Losses {
        let mut losses: Losses = self
            .list
            .iter()
            .map(|finding| Loss {
                at: finding.at(root),
                code: LossCode::SchemaKeyword,
                detail: finding.detail.clone(),
                tool: None,
            })
            .collect();
        if self.left_out > 0 {
            losses.push(Loss {
                at: String::new(),
                code: LossCode::SchemaKeyword,
                detail: format!("{} more changes of the same kind", self.left_out),
                tool: None,
            });
        }
        losses
    }
}

impl Finding<'_> {
    /// Whether the client's schema is wrong, not merely more than Gemini takes.
    fn is_fault(&self) -> bool {
        match self.effect {
            Effect::Repaired => true,
            Effect::Rewritten
            | Effect::Described
            | Effect::Dropped
            | Effect::Adjusted
            | Effect::Cut => false,
        }
    }

    /// The path of the keyword inside the schema: `properties.a.items.not`.
    pub(crate) fn at(&self, root: &Tree<'_>) -> String {
        let mut at = path(root, self.node);
        if !self.keyword.is_empty() {
            if !at.is_empty() {
                at.push('.');
            }
            push_clipped(&mut at, &self.keyword);
        }
        at
    }
}

/// The path from `root` to the value whose text is `inner`.
pub(crate) fn path(root: &Tree<'_>, inner: &str) -> String {
    let mut at = String::new();
    let mut here = root;
    while let Some((step, child)) = here.child_around(inner) {
        match step {
            Step::Key(key) => {
                if !at.is_empty() {
                    at.push('.');
                }
                push_clipped(&mut at, key);
            }
            Step::Index(index) => at.push_str(&format!("[{index}]")),
        }
        here = child;
    }
    at
}

/// Adds a name to a path; a long one is cut.
pub(crate) fn push_clipped(path: &mut String, name: &str) {
    path.push_str(&name[..name.floor_char_boundary(MAX_NAME)]);
    if name.len() > MAX_NAME {
        path.push('…');
    }
}

fn clipped(mut detail: String) -> String {
    if detail.len() > MAX_DETAIL {
        detail.truncate(detail.floor_char_boundary(MAX_DETAIL));
        detail.push('…');
    }
    detail
}
