//! Which result answers which call.
//!
//! Tried in this order, each for all results before the next: the id as it stands; the id without
//! the dialect's prefix; the id without signs and case; in the step just before, an id that begins
//! or ends like the call's; the tool's name; the order.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::scan::{CallSite, Fate, ResultSite};
use crate::canon::{Loss, LossCode, Losses, call_token};
use crate::upstream::generate_content::signatures::plain;

/// Ids are only compared by their ends among so many calls, and only if they are so long.
const COMPARED: usize = 64;
const ALIKE: usize = 8;

/// Gives every call its result.
pub(super) fn answers<'r>(
    calls: &mut [CallSite<'r>],
    results: &mut [ResultSite<'r>],
    losses: &mut Losses,
) {
    if results.is_empty() {
        return;
    }
    by_key(calls, results, losses, Cow::Borrowed);
    if results.iter().all(|site| site.fate != Fate::Orphan) {
        return;
    }
    by_key(calls, results, losses, |id| Cow::Borrowed(call_token(id)));
    by_key(calls, results, losses, |id| Cow::Owned(plain(call_token(id))));
    by_step(calls, results, losses);
}

/// The calls with one id that wait for a result.
#[derive(Default)]
struct Queue {
    calls: Vec<usize>,
    /// How many of `calls` come before the results looked at so far.
    passed: usize,
    /// Waiting, by step. The latest step is served first, its calls in their order.
    waiting: Vec<(usize, VecDeque<usize>)>,
    /// The last one that got its result.
    served: Option<usize>,
}

impl Queue {
    fn next(&mut self, calls: &[CallSite<'_>], before: usize) -> Option<usize> {
        while let Some(&call) = self.calls.get(self.passed)
            && calls[call].order < before
        {
            self.passed += 1;
            if calls[call].result.is_some() {
                self.served = Some(call);
                continue;
            }
            let step = calls[call].step;
            match self.waiting.last_mut() {
                Some((last, queue)) if *last == step => queue.push_back(call),
                _ => self.waiting.push((step, VecDeque::from([call]))),
            }
        }
        let (_, queue) = self.waiting.last_mut()?;
        let call = queue.pop_front();
        if queue.is_empty() {
            self.waiting.pop();
        }
        self.served = call;
        call
    }
}

fn by_key<'r>(
    calls: &mut [CallSite<'r>],
    results: &mut [ResultSite<'r>],
    losses: &mut Losses,
    key: impl Fn(&'r str) -> Cow<'r, str>,
) {
    let mut queues: BTreeMap<Cow<'r, str>, Queue> = BTreeMap::new();
    for (at, site) in calls.iter().enumerate() {
        let call = site.call;
        queues.entry(key(&call.id)).or_default().calls.push(at);
    }
    queues.remove("");
    for site in results.iter_mut().filter(|site| site.fate == Fate::Orphan) {
        let result = site.result;
        let Some(id) = result.call_id.as_deref().filter(|id| !id.is_empty()) else { continue };
        let Some(queue) = queues.get_mut(&key(id)) else { continue };
        match queue.next(calls, site.order) {
            Some(call) => answer(calls, call, site),
            None => {
                if let Some(call) = queue.served {
                    supersede(calls, call, site, losses);
                }
            }
        }
    }
}

fn answer<'r>(calls: &mut [CallSite<'r>], at: usize, site: &mut ResultSite<'r>) {
    let call = &mut calls[at];
    call.is_late = call.is_past(site.order);
    call.result = Some(site.result);
    site.fate = if call.is_late { Fate::Late(at) } else { Fate::Answers };
}

/// Some clients send each result twice after a restart. Where the two differ, the last one counts,
/// unless the model has spoken between them.
fn supersede<'r>(
    calls: &mut [CallSite<'r>],
    at: usize,
    site: &mut ResultSite<'r>,
    losses: &mut Losses,
) {
    let call = &mut calls[at];
    if call.is_past(site.order) {
        site.fate = Fate::Late(at);
        return;
    }
    site.fate = Fate::Superseded;
    if call.result != Some(site.result) {
        call.result = Some(site.result);
        report(site, call, losses, "the call has several results; the last one was kept");
    }
}

/// The calls and results of one step that have not found each other.
#[derive(Default)]
struct OpenStep {
    calls: Vec<usize>,
    results: Vec<usize>,
}

fn by_step<'r>(calls: &mut [CallSite<'r>], results: &mut [ResultSite<'r>], losses: &mut Losses) {
    let mut steps: BTreeMap<usize, OpenStep> = BTreeMap::new();
    for (at, site) in results.iter().enumerate() {
        if let (Fate::Orphan, Some(step)) = (site.fate, site.step) {
            steps.entry(step).or_default().results.push(at);
        }
    }
    for (at, site) in calls.iter().enumerate() {
        if site.result.is_none()
            && let Some(open) = steps.get_mut(&site.step)
        {
            open.calls.push(at);
        }
    }
    for open in steps.into_values().filter(|open| !open.calls.is_empty()) {
        by_ends(&open, calls, results);
        by_name(&open, calls, results, losses);
        by_order(open, calls, results, losses);
    }
}

/// A client put something before or behind the id, or cut it.
fn by_ends<'r>(open: &OpenStep, calls: &mut [CallSite<'r>], results: &mut [ResultSite<'r>]) {
    if open.calls.len() > COMPARED || open.results.len() > COMPARED {
        return;
    }
    for &result in &open.results {
        let site = &mut results[result];
        let theirs = plain(site.result.call_id.as_deref().unwrap_or_default());
        let alike = open.calls.iter().copied().find(|&call| {
            let ours = plain(&calls[call].call.id);
            let (long, short) =
                if ours.len() > theirs.len() { (&ours, &theirs) } else { (&theirs, &ours) };
            calls[call].result.is_none()
                && short.len() >= ALIKE
                && (long.starts_with(short.as_str()) || long.ends_with(short.as_str()))
        });
        if let Some(call) = alike {
            answer(calls, call, site);
        }
    }
}

fn by_name<'r>(
    open: &OpenStep,
    calls: &mut [CallSite<'r>],
    results: &mut [ResultSite<'r>],
    losses: &mut Losses,
) {
    let mut named: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for &call in open.calls.iter().filter(|&&call| calls[call].result.is_none()) {
        named.entry(&calls[call].call.tool.name).or_default().push_back(call);
    }
    let mut pairs = Vec::new();
    for &result in open.results.iter().filter(|&&result| results[result].fate == Fate::Orphan) {
        let Some(tool) = &results[result].result.tool else { continue };
        if let Some(call) = named.get_mut(&*tool.name).and_then(VecDeque::pop_front) {
            pairs.push((call, result));
        }
    }
    for (call, result) in pairs {
        pair(calls, call, &mut results[result], losses);
    }
}

/// Pairs the remaining results with the remaining calls in order, if they are equally many. A result
/// without an id or a name has only its order, so it is paired as far as there are calls.
fn by_order<'r>(
    mut open: OpenStep,
    calls: &mut [CallSite<'r>],
    results: &mut [ResultSite<'r>],
    losses: &mut Losses,
) {
    open.calls.retain(|&call| calls[call].result.is_none());
    open.results.retain(|&result| results[result].fate == Fate::Orphan);
    if open.calls.len() != open.results.len() {
        open.results.retain(|&result| {
            let ToolSaid { id, name } = said(&results[result]);
            !id && !name
        });
    }
    for (call, result) in open.calls.into_iter().zip(open.results) {
        if !said(&results[result]).name {
            pair(calls, call, &mut results[result], losses);
        }
    }
}

struct ToolSaid {
    id: bool,
    name: bool,
}

fn said(site: &ResultSite<'_>) -> ToolSaid {
    ToolSaid {
        id: site.result.call_id.as_deref().is_some_and(|id| !id.is_empty()),
        name: site.result.tool.as_ref().is_some_and(|tool| !tool.name.is_empty()),
    }
}

/// Takes a result for a call's although the ids do not say so.
fn pair<'r>(calls: &mut [CallSite<'r>], at: usize, site: &mut ResultSite<'r>, losses: &mut Losses) {
    if said(site).id && !calls[at].call.id.is_empty() {
        let detail = "the result's id fits no call; it was taken for the one that it follows";
        report(site, &calls[at], losses, detail);
    }
    answer(calls, at, site);
}

fn report(site: &ResultSite<'_>, call: &CallSite<'_>, losses: &mut Losses, detail: &str) {
    let (turn, part) = site.at;
    losses.add_with(LossCode::Changed, || Loss {
        at: format!("turns[{turn}].parts[{part}]"),
        code: LossCode::Changed,
        detail: detail.to_owned(),
        tool: Some(call.call.tool.to_string()),
    });
}
