//! Repairs of arguments that do not fit their schema, where the repair keeps the meaning.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use super::Losses;
use super::fit::{Additional, Fit, Node, NodeId, Types, allowed};
use super::tape::Tape;
use crate::canon::{Loss, LossCode};
use crate::json::{Kind, Raw};
use crate::schema::finding::push_clipped;

/// Maximum depth at which values are repaired.
const MAX_DEPTH: usize = 64;
/// Maximum levels of JSON in strings in JSON.
const MAX_NESTING: usize = 3;
/// Maximum number of losses that are listed.
const MAX_LOSSES: usize = 50;

/// A repair of a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A required property is missing and its schema has a default.
    Default,
    /// A whole number is written as a fraction.
    Fraction,
    /// The arguments are a string that holds an object.
    JsonText,
    /// A value differs in case from the one value of `enum` that it can mean.
    Listed,
    /// An optional property is null and may not be.
    Null,
    /// A number, boolean, array or object is written in a string.
    Quoted,
}

impl Repair {
    /// Every repair.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::Fraction, Self::JsonText, Self::Listed, Self::Null, Self::Quoted];

    /// Text of the loss that reports the repair.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Default => "required but missing: the schema's default filled in",
            Self::Fraction => "a whole number written as a fraction",
            Self::JsonText => "JSON text became an object",
            Self::Listed => "written as the schema lists it",
            Self::Null => "null for a property that may be absent: left out",
            Self::Quoted => "a value that came inside a string",
        }
    }
}

/// One walk over a text.
pub(super) struct Repairer<'a> {
    fit: Fit<'a>,
    /// `false`: only report what does not fit.
    is_repairing: bool,
    nesting: usize,
    path: Vec<RepairStep>,
    edits: Vec<Edit>,
    losses: Losses,
    /// Losses beyond those that are listed.
    unlisted: usize,
    has_violation: bool,
}

#[derive(Clone)]
enum RepairStep {
    Name(Rc<str>),
    Index(usize),
}

/// Other text for a part of the text.
struct Edit {
    span: Range<usize>,
    text: String,
}

impl<'a> Repairer<'a> {
    pub(super) fn new(fit: Fit<'a>, is_repairing: bool) -> Self {
        let (path, edits, losses) = (Vec::new(), Vec::new(), Losses::new());
        let (unlisted, has_violation) = (0, false);
        Self { fit, is_repairing, nesting: 0, path, edits, losses, unlisted, has_violation }
    }

    /// Returns the repaired text, if anything was repaired, and the losses.
    pub(super) fn run(mut self, root: NodeId, text: &str) -> (Option<String>, Losses) {
        self.value(&[root], 0, 0);
        if self.unlisted > 0 {
            let code = if self.has_violation {
                LossCode::ArgumentViolation
            } else {
                LossCode::ArgumentRepaired
            };
            let detail = format!("and {} more", self.unlisted);
            self.losses.push(Loss { at: "args".to_owned(), code, detail, tool: None });
        }
        (edited(text, self.edits), self.losses)
    }

    fn value(&mut self, ids: &[NodeId], value: usize, depth: usize) {
        let fits = |id: &NodeId| self.fit.fits(*id, value, depth);
        if depth > MAX_DEPTH || self.losses.len() >= MAX_LOSSES || ids.iter().all(fits) {
            return;
        }
        let nodes = self.fit.nodes;
        let ids = self.fit.together(ids);
        let (allowed, found) = (allowed(nodes, &ids), self.fit.types_of(value));
        if !allowed.has(found) {
            if !self.converted(&ids, value, allowed, depth) {
                self.violation(format!("expected {allowed}, got {found}"));
            }
            return;
        }
        for node in ids.iter().map(|id| &nodes[*id]) {
            if !self.fit.is_listed(node, value) {
                if !self.listed(&ids, node, value, depth) {
                    self.violation("not one of the values that the schema lists");
                }
                return;
            }
            if let Some(bounds) = &node.bounds
                && let Some(complaint) = self.fit.complaint(bounds, value)
            {
                self.violation(complaint);
            }
        }
        match self.fit.tape.kind(value) {
            Kind::Object => self.object(&ids, value, depth),
            Kind::Array => self.array(&ids, value, depth),
            Kind::Bool | Kind::Null | Kind::Number | Kind::String => {}
        }
        for branches in ids.iter().flat_map(|id| &nodes[*id].any) {
            self.alternatives(branches, value, depth);
        }
    }

    fn object(&mut self, ids: &[NodeId], value: usize, depth: usize) {
        let nodes = self.fit.nodes;
        let members: Vec<_> = self.fit.tape.members(value).collect();
        let mut names = BTreeSet::new();
        let mut removed = Vec::new();
        for (index, &(key, member)) in members.iter().enumerate() {
            let name = self.fit.tape.string(key);
            if !self.fit.take(ids.len() + name.len() / 64) {
                return;
            }
            self.path.push(RepairStep::Name(Rc::from(&*name)));
            let mut schemas = Vec::new();
            for node in ids.iter().map(|id| &nodes[*id]) {
                match (node.properties.get(&*name), node.additional) {
                    (Some(&id), _) | (None, Additional::Schema(id)) => schemas.push(id),
                    (None, Additional::No) => self.violation("the schema has no such property"),
                    (None, Additional::Any) => {}
                }
            }
            let is_required = || {
                ids.iter()
                    .any(|id| nodes[*id].required.binary_search_by(|it| (**it).cmp(&*name)).is_ok())
            };
            if self.is_repairing
                && self.fit.tape.kind(member) == Kind::Null
                && !schemas.iter().all(|id| self.fit.fits(*id, member, depth + 1))
                && !is_required()
            {
                self.repaired(Repair::Null);
                removed.push(index);
            } else if !schemas.is_empty() {
                self.value(&schemas, member, depth + 1);
            }
            self.path.pop();
            names.insert(name);
        }
        let mut added = Vec::new();
        let mut known = BTreeSet::new();
        for id in ids {
            for name in nodes[*id].required.iter().filter(|it| !names.contains(&***it)) {
                if !self.fit.take(1 + ids.len() + name.len() / 64) {
                    return;
                }
                if known.contains(name) {
                    continue;
                }
                self.path.push(RepairStep::Name(Rc::from(&**name)));
                match default_for(&self.fit, ids, name).filter(|_| self.is_repairing) {
                    Some(default) => {
                        self.repaired(Repair::Default);
                        known.insert(name);
                        added.push((name, default));
                    }
                    None => self.violation("required but missing"),
                }
                self.path.pop();
            }
        }
        let added: Vec<String> = added
            .into_iter()
            .map(|(name, default)| {
                let mut member = Vec::new();
                crate::json::write::string(&mut member, name);
                format!("{}:{}", String::from_utf8_lossy(&member), default.get())
            })
            .collect();
        self.edit_members(value, &members, &removed, &added);
    }

    /// Takes members out and adds new ones behind the last.
    fn edit_members(
        &mut self,
        object: usize,
        members: &[(usize, usize)],
        removed: &[usize],
        added: &[String],
    ) {
        if removed.is_empty() && added.is_empty() {
            return;
        }
        let tape = self.fit.tape;
        let last_kept =
            (0..members.len()).rev().find(|index| removed.binary_search(index).is_err());
        for &index in removed.iter().filter(|index| last_kept.is_some_and(|last| **index < last)) {
            let span = tape.span(members[index].0).start..tape.span(members[index + 1].0).start;
            self.edits.push(Edit { span, text: String::new() });
        }
        let end = members.last().map(|(_, last)| tape.span(*last).end);
        let (start, comma) = match (last_kept, members.first()) {
            (Some(last), _) => (tape.span(members[last].1).end, !added.is_empty()),
            (None, Some((first, _))) => (tape.span(*first).start, false),
            (None, None) => (tape.span(object).start + 1, false),
        };
        let text = format!("{}{}", if comma { "," } else { "" }, added.join(","));
        let end = end.unwrap_or(start).max(start);
        if !text.is_empty() || end > start {
            self.edits.push(Edit { span: start..end, text });
        }
    }

    fn array(&mut self, ids: &[NodeId], value: usize, depth: usize) {
        let nodes = self.fit.nodes;
        for (index, item) in self.fit.tape.items(value).enumerate() {
            let schema = |id: &NodeId| {
                let node = &nodes[*id];
                node.prefix.get(index).copied().or(node.items)
            };
            if !self.fit.take(ids.len()) {
                return;
            }
            let schemas: Vec<_> = ids.iter().filter_map(schema).collect();
            if !schemas.is_empty() {
                self.path.push(RepairStep::Index(index));
                self.value(&schemas, item, depth + 1);
                self.path.pop();
            }
        }
    }

    fn alternatives(&mut self, branches: &[NodeId], value: usize, depth: usize) {
        let nodes = self.fit.nodes;
        if branches.iter().any(|id| self.fit.fits(*id, value, depth + 1)) {
            return;
        }
        let found = self.fit.types_of(value);
        if !self.fit.take(branches.len()) {
            return;
        }
        let suits = |id: &&NodeId| nodes[**id].allowed.has(found);
        let suited: Vec<_> = branches.iter().filter(suits).collect();
        if let [only] = suited.as_slice() {
            self.value(&[**only], value, depth + 1);
            return;
        }
        for &id in suited.iter().filter(|_| self.is_repairing) {
            if !self.fit.take(1 + self.path.len()) {
                return;
            }
            let Fit { nodes, tape, steps, .. } = self.fit;
            let mut trial = Repairer::new(Fit::new(nodes, tape, steps), true);
            trial.path.clone_from(&self.path);
            trial.nesting = self.nesting;
            trial.value(&[*id], value, depth + 1);
            if !trial.has_violation {
                self.edits.append(&mut trial.edits);
                self.take_losses(trial.losses, trial.unlisted);
                return;
            }
        }
        self.violation(format!("fits none of {} alternatives", branches.len()));
    }

    /// Writes the value as another type, where its text already says it.
    fn converted(&mut self, ids: &[NodeId], value: usize, allowed: Types, depth: usize) -> bool {
        if !self.is_repairing {
            return false;
        }
        let text = self.fit.tape.text(value);
        let (new, repair) = match self.fit.tape.kind(value) {
            Kind::Number if allowed.has(Types::INTEGER) => match whole(text) {
                Some(new) => (new, Repair::Fraction),
                None => return false,
            },
            Kind::String => {
                let inner = self.fit.tape.string(value);
                match unquoted(inner.trim(), allowed) {
                    Some(new) => (new, Repair::Quoted),
                    None => return false,
                }
            }
            Kind::Array | Kind::Bool | Kind::Null | Kind::Number | Kind::Object => return false,
        };
        self.replaced(ids, value, new, repair, depth)
    }

    /// Writes the value as the schema lists it, where exactly one listed value was meant.
    fn listed(&mut self, ids: &[NodeId], node: &Node, value: usize, depth: usize) -> bool {
        if !self.is_repairing || self.fit.tape.kind(value) != Kind::String {
            return false;
        }
        let meant = self.fit.tape.string(value);
        let values = node.values.as_ref().map_or(&[][..], |listed| listed.values());
        let text: usize = values.iter().map(|it| it.get().len()).sum();
        if !self.fit.take(values.len() + (text + meant.len()) / 64) {
            return true;
        }
        let folded = meant.to_lowercase();
        let same_word =
            |it: &&Raw<'_>| it.as_text().is_some_and(|it| it.decode().to_lowercase() == folded);
        let same_text = |it: &&Raw<'_>| it.kind() != Kind::String && it.get() == meant.trim();
        let Some(new) =
            only(values.iter().filter(same_word)).or_else(|| only(values.iter().filter(same_text)))
        else {
            return false;
        };
        self.replaced(ids, value, new.get().to_owned(), Repair::Listed, depth)
    }

    /// Replaces the value with `new`, which is repaired in turn.
    fn replaced(
        &mut self,
        ids: &[NodeId],
        value: usize,
        new: String,
        repair: Repair,
        depth: usize,
    ) -> bool {
        if !self.fit.take(new.len() / 8) {
            return true;
        }
        let Some(tape) = Tape::new(&new).filter(|_| self.nesting < MAX_NESTING) else {
            return false;
        };
        self.repaired(repair);
        let fit = Fit::new(self.fit.nodes, &tape, self.fit.steps);
        let mut inner = Repairer::new(fit, true);
        inner.nesting = self.nesting + 1;
        inner.path = std::mem::take(&mut self.path);
        inner.value(ids, 0, depth + 1);
        self.path = std::mem::take(&mut inner.path);
        self.has_violation |= inner.has_violation;
        let losses = std::mem::take(&mut inner.losses);
        self.take_losses(losses, inner.unlisted);
        let text = edited(&new, inner.edits).unwrap_or(new);
        self.edits.push(Edit { span: self.fit.tape.span(value), text });
        true
    }

    fn repaired(&mut self, repair: Repair) {
        self.report(LossCode::ArgumentRepaired, repair.detail().to_owned());
    }

    fn violation(&mut self, detail: impl Into<String>) {
        self.report(LossCode::ArgumentViolation, detail.into());
    }

    /// Takes over the losses of a part.
    fn take_losses(&mut self, mut losses: Losses, unlisted: usize) {
        let room = MAX_LOSSES.saturating_sub(self.losses.len());
        self.unlisted += unlisted + losses.len().saturating_sub(room);
        losses.truncate(room);
        self.losses.append(&mut losses);
    }

    fn report(&mut self, code: LossCode, detail: String) {
        self.has_violation |= code == LossCode::ArgumentViolation;
        if self.losses.len() >= MAX_LOSSES {
            self.unlisted += 1;
            return;
        }
        let mut at = "args".to_owned();
        for step in &self.path {
            match step {
                RepairStep::Name(name) => {
                    at.push('.');
                    push_clipped(&mut at, name);
                }
                RepairStep::Index(index) => at.push_str(&format!("[{index}]")),
            }
        }
        self.losses.push(Loss { at, code, detail, tool: None });
    }
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The default of a property, if it has one that fits.
fn default_for<'a>(fit: &Fit<'a>, ids: &[NodeId], name: &str) -> Option<&'a Raw<'static>> {
    let nodes = fit.nodes;
    let schemas: Vec<_> =
        ids.iter().filter_map(|id| nodes[*id].properties.get(name).copied()).collect();
    let default = fit.together(&schemas).into_iter().find_map(|id| nodes[id].default.as_ref())?;
    if !fit.take(default.get().len() / 8) {
        return None;
    }
    let tape = Tape::new(default.get())?;
    let fit = Fit::new(nodes, &tape, fit.steps);
    schemas.iter().all(|id| fit.fits(*id, 0, 0)).then_some(default)
}

/// What stands in a string, if it is JSON of a type that is allowed.
fn unquoted(inner: &str, allowed: Types) -> Option<String> {
    if allowed.has(Types::BOOL) {
        let lower = inner.to_ascii_lowercase();
        if lower == "true" || lower == "false" {
            return Some(lower);
        }
    }
    let raw = Raw::parse(inner.to_owned())?;
    let kind = raw.kind();
    match kind {
        Kind::Array | Kind::Object | Kind::Number if allowed.has(Types::of(kind, inner)) => {
            Some(inner.to_owned())
        }
        Kind::Number if allowed.has(Types::INTEGER) => whole(inner),
        Kind::Array | Kind::Object | Kind::Number | Kind::Bool | Kind::Null | Kind::String => None,
    }
}

/// `1.0` → `1`, `2.5e1` → `25`; `None` where the number is not whole (or out of all reason).
fn whole(number: &str) -> Option<String> {
    const LONGEST: usize = 40;
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().ok()?;
    let digits = format!("{before}{after}");
    let point = i64::try_from(before.len()).ok()?.checked_add(exponent)?;
    let point = usize::try_from(point.max(0)).ok().filter(|_| point <= LONGEST as i64)?;
    let (mut whole, rest) = match digits.get(..point) {
        Some(whole) => (whole.to_owned(), digits.get(point..)?),
        None => (format!("{digits:0<point$}"), ""),
    };
    if rest.bytes().any(|digit| digit != b'0') {
        return None;
    }
    whole = whole.trim_start_matches('0').to_owned();
    if whole.is_empty() {
        return Some("0".to_owned());
    }
    Some(format!("{sign}{whole}"))
}

fn edited(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|edit| edit.span.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Edit { span, text: new } in edits {
        // Two schemas may ask for the same change; the first has it.
        if span.start < done {
            continue;
        }
        out.push_str(&text[done..span.start]);
        out.push_str(&new);
        done = span.end;
    }
    out.push_str(&text[done..]);
    Some(out)
}
