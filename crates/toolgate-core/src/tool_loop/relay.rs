//! Several rounds as one stream.

use super::{End, Step, ToolLoop};
use crate::canon::{Answer, Assembler, Event, Failure, FailureKind, Item, Sink, Start};

/// Joins a loop's rounds into one stream: one start, one end, and between them the events that the
/// caller may see.
///
/// Calls wait until the loop has said whose they are, and so does what follows them. Where steps
/// are hidden, everything waits that may turn out to belong to a round that the caller does not
/// see.
///
/// ```text
/// for each round:   feed(event)*
///                   round() ──► ToolLoop::answer, fail or abort
///                   settle(loop) once the loop has come to its next Generate or Done
/// ```
#[derive(Clone, Debug)]
pub struct Relay {
    start: Option<Start<'static>>,
    started: bool,
    /// Everything of this round waits.
    hiding: bool,
    /// The caller has seen something of this round.
    committed: bool,
    held: Vec<Event<'static>>,
    round: Assembler,
}

impl Relay {
    /// A relay for a loop that is about to ask for the first time.
    pub fn new(tool_loop: &ToolLoop) -> Self {
        Self {
            start: None,
            started: false,
            hiding: tool_loop.may_hide(),
            committed: false,
            held: Vec::new(),
            round: Assembler::default(),
        }
    }

    /// Takes an event of this round, and passes it on if the caller may see it at once.
    pub fn feed(&mut self, event: &Event<'_>, to: &mut impl Sink) {
        self.round.event(event);
        match event {
            Event::Start(start) => {
                if self.start.is_none() {
                    self.start = Some(start.clone().into_owned());
                }
            }
            Event::Finish(_) | Event::Fail(_) => {}
            Event::Call(_) => self.held.push(event.clone().into_owned()),
            Event::Text(_)
            | Event::Thought(_)
            | Event::Signature { .. }
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_) => {
                if self.hiding || !self.held.is_empty() {
                    self.held.push(event.clone().into_owned());
                } else {
                    self.pass(event, to);
                }
            }
        }
    }

    /// The round as a whole, for [`ToolLoop::answer`] or [`ToolLoop::fail`].
    pub fn round(&mut self) -> Result<Answer, Failure> {
        let round = std::mem::take(&mut self.round).finish();
        if round.is_err() {
            self.held.clear();
        }
        round
    }

    /// Whether the caller has seen something of this round: then a failure is final
    /// ([`ToolLoop::abort`]).
    pub fn is_committed(&self) -> bool {
        self.committed
    }

    /// Passes on the rest of the round that the caller may see, after the loop has judged it.
    pub fn settle(&mut self, tool_loop: &ToolLoop, to: &mut impl Sink) {
        match tool_loop.step() {
            Step::RunTools(_) => {}
            Step::Generate(_) => {
                if self.hiding {
                    self.held.clear();
                }
                self.release(&[], to);
                self.hiding = tool_loop.may_hide();
                self.committed = false;
            }
            Step::Done(outcome) => match &outcome.end {
                End::Answered(answer) | End::Calls { answer, .. } => {
                    self.release(&answer.items, to);
                    self.pass(&Event::Finish(answer.finish.clone()), to);
                }
                End::Failed(failure) => to.event(&Event::Fail(failure.clone())),
                End::Cancelled => {
                    let failure = Failure::new(FailureKind::Cut, "the request was cancelled");
                    to.event(&Event::Fail(failure));
                }
            },
        }
    }

    fn pass(&mut self, event: &Event<'_>, to: &mut impl Sink) {
        if !self.started {
            self.started = true;
            to.event(&Event::Start(self.start.take().unwrap_or_default()));
        }
        self.committed = true;
        to.event(event);
    }

    /// Passes on the events that were held back; of the calls, only those among `seen`.
    fn release(&mut self, seen: &[Item], to: &mut impl Sink) {
        for event in std::mem::take(&mut self.held) {
            let hidden = match &event {
                Event::Call(call) => {
                    !seen.iter().any(|item| matches!(item, Item::Call(it) if it.id == call.id))
                }
                Event::Start(_)
                | Event::Text(_)
                | Event::Thought(_)
                | Event::Signature { .. }
                | Event::Media(_)
                | Event::Server(_)
                | Event::Grounding(_)
                | Event::Finish(_)
                | Event::Fail(_) => false,
            };
            if !hidden {
                self.pass(&event, to);
            }
        }
    }
}
