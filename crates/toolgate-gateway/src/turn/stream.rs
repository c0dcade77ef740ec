//! Stream of a turn: the state machine that moves the bytes of an answer.
//!
//! ```text
//!            ┌────────── nothing shown yet, may be tried again ──────────┐
//!            ▼                                                           │
//!   Waiting ─► Asking ─► Reading ─► … bytes to the client … ─► Done ◄────┴─ failure
//! ```
//!
//! A stream owns one turn: it asks, reads, translates, and asks again while the client has seen nothing
//! that could not be taken back. There is no task, channel or lock per event. Dropping it (the client
//! went away) drops the upstream's connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Sleep;
use toolgate_core::canon::{Failure, FailureKind, Usage};
use toolgate_core::translate::{AnyEncoder, Translator};
use toolgate_core::upstream::generate_content::decode_error;

use super::attempts::{Attempts, Next};
use super::audit::Audit;
use super::context::Context;
use super::corrections::{self, judge};
use super::deadlines::{Deadlines, Due};
use super::prepare::{Input, Prepared, prepare};
use super::send::silent;
use crate::signatures::SignatureRecorder;
use crate::upstream::error_body;

/// One turn, streamed.
pub(crate) struct TurnStream {
    attempts: Attempts,
    state: State,
    translator: Translator<AnyEncoder>,
    audit: Audit,
    recorder: SignatureRecorder,
    out: Vec<u8>,
    deadlines: Deadlines,
    /// Rings when something may be due.
    alarm: Pin<Box<Sleep>>,
    /// The client has our headers: failures can only be told within the stream.
    committed: bool,
    /// The rest of an answer was asked for, and nothing has come of it yet.
    going_on: bool,
    /// What further rounds are made of, where calls are judged.
    asked: Option<Box<(Context, Input)>>,
}

type Preparing = Pin<Box<dyn Future<Output = Result<Prepared, Failure>> + Send>>;
type Asking = Pin<Box<dyn Future<Output = Result<http::Response<Incoming>, Failure>> + Send>>;

enum State {
    /// Before the next try.
    Waiting(Pin<Box<Sleep>>),
    /// Another round is being put together.
    Preparing(Preparing),
    /// The request is on its way.
    Asking(Asking),
    /// The upstream refused; its reasons are being read.
    Refused(StatusCode, Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send>>),
    /// The answer is coming.
    Reading(Incoming),
    Done,
}

/// Result of the first poll of an answer.
pub(crate) enum First {
    /// There is something to show, or the client should get a sign of life.
    Stream,
    /// There will be no answer.
    Failure(Failure),
}

impl TurnStream {
    pub(crate) fn new(
        attempts: Attempts,
        encoder: AnyEncoder,
        audit: Audit,
        recorder: SignatureRecorder,
    ) -> Self {
        let translator = Translator::new(Arc::clone(attempts.exchange()), attempts.ids(), encoder);
        let deadlines =
            Deadlines::new(attempts.ping(), attempts.idle(), attempts.total(), Instant::now());
        let alarm = Box::pin(tokio::time::sleep(Duration::ZERO));
        let state = State::Asking(attempts.ask());
        Self {
            attempts,
            state,
            translator,
            audit,
            recorder,
            out: Vec::with_capacity(4096),
            deadlines,
            alarm,
            committed: false,
            going_on: false,
            asked: None,
        }
    }

    /// Judges the calls, where the configuration says so.
    pub(crate) fn judged(mut self, context: &Context, input: &Input, is_structured: bool) -> Self {
        let corrections = context.current.config.corrections;
        if let Some(judge) = judge(corrections, self.attempts.exchange(), is_structured) {
            self.translator = self.translator.judged_by(judge);
            self.asked = Some(Box::new((context.clone(), input.clone())));
        }
        self
    }

    /// Runs until there is something to show. Waits no longer than the client can do without a sign
    /// of life, so that a late error is still an error status.
    pub(crate) async fn first(&mut self) -> First {
        loop {
            match self.step().await {
                Progress::Silent => {}
                Progress::Bytes | Progress::End => break,
                Progress::Failed(failure) => return First::Failure(failure),
            }
        }
        self.committed = true;
        First::Stream
    }

    /// Puts the whole answer together on the side.
    pub(crate) fn collect(&mut self) {
        self.translator.collect();
    }

    /// Translator of the answer.
    pub(crate) fn translator(&self) -> &Translator<AnyEncoder> {
        &self.translator
    }

    /// Whether nothing more will be shown.
    pub(crate) fn has_ended(&self) -> bool {
        self.out.is_empty() && matches!(self.state, State::Done)
    }

    /// Parts of a turn that failed before its first bytes.
    pub(crate) fn into_parts(self) -> (Attempts, Audit) {
        (self.attempts, self.audit)
    }

    /// Ends the turn here. The client is told why, unless it has been told of an end already.
    pub(crate) fn abort(&mut self, failure: Failure) {
        self.state = State::Done;
        self.translator.fail(failure, &mut self.out);
    }

    /// The next bytes for the client.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.out.is_empty() {
                self.deadlines.shown(Instant::now());
                let shown = std::mem::replace(&mut self.out, Vec::with_capacity(1024));
                return Some(Bytes::from(shown));
            }
            if matches!(self.state, State::Done) {
                return None;
            }
            match self.step().await {
                Progress::Silent | Progress::Bytes | Progress::End => {}
                Progress::Failed(mut failure) => {
                    self.audit.failed(&failure);
                    let named = format!(" (request id: {})", self.attempts.request_id());
                    failure.message.push_str(&named);
                    self.translator.fail(failure, &mut self.out);
                }
            }
        }
    }

    /// One thing happens. Nothing is lost when the future is dropped before it ends.
    async fn step(&mut self) -> Progress {
        let ended = match &mut self.state {
            State::Done => return Progress::End,
            State::Waiting(sleep) => tokio::select! {
                () = sleep => {
                    self.deadlines.heard(Instant::now());
                    self.state = State::Asking(self.attempts.ask());
                    return Progress::Silent;
                }
                () = &mut self.alarm => return self.rang(),
            },
            State::Preparing(preparing) => tokio::select! {
                biased;
                prepared = preparing => match prepared {
                    Ok(prepared) => {
                        self.deadlines.heard(Instant::now());
                        self.attempts.next_round(&prepared);
                        self.translator.round(prepared.exchange, self.attempts.ids());
                        self.state = State::Asking(self.attempts.ask());
                        return Progress::Silent;
                    }
                    Err(failure) => {
                        self.state = State::Done;
                        return Progress::Failed(failure);
                    }
                },
                () = &mut self.alarm => return self.rang(),
            },
            State::Asking(asking) => tokio::select! {
                biased;
                answered = asking => match answered {
                    Ok(response) => {
                        self.deadlines.heard(Instant::now());
                        let (head, body) = response.into_parts();
                        self.state = if head.status.is_success() {
                            State::Reading(body)
                        } else {
                            State::Refused(head.status, Box::pin(error_body(body)))
                        };
                        return Progress::Silent;
                    }
                    Err(failure) => failure,
                },
                () = &mut self.alarm => return self.rang(),
            },
            State::Refused(status, reading) => tokio::select! {
                biased;
                read = reading => match read {
                    Ok(body) => decode_error(status.as_u16(), &body),
                    Err(failure) => failure,
                },
                () = &mut self.alarm => return self.rang(),
            },
            State::Reading(body) => tokio::select! {
                biased;
                frame = body.frame() => return self.heard(frame),
                () = &mut self.alarm => return self.rang(),
            },
        };
        self.failed(&ended)
    }

    fn heard(
        &mut self,
        frame: Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>,
    ) -> Progress {
        let began = Instant::now();
        self.deadlines.heard(Instant::now());
        // An upstream that is never silent lets no alarm ring.
        if self.deadlines.due(Instant::now(), true) == Due::Over {
            return self.took_too_long();
        }
        match frame {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    self.going_on = false;
                    self.translator.feed(bytes, &mut self.out);
                }
            }
            // The rest of an answer did not come; its beginning is still there.
            None | Some(Err(_)) if self.going_on => {
                let message = "the upstream closed the stream before it went on";
                return self.failed(&Failure::new(FailureKind::Cut, message));
            }
            // However the connection ended, the decoder knows whether the answer was complete.
            None | Some(Err(_)) => self.ended(),
        }
        self.audit.worked(began.elapsed());
        let seen = self.translator.seen();
        self.audit.deliver(&seen.calls);
        self.recorder.deliver(&seen.calls);
        if let Some(failure) = &seen.failure {
            let failure = failure.clone();
            return self.failed(&failure);
        }
        if let Some(usage) = seen.next_round {
            self.next_round(&usage);
        } else if seen.finish.is_some() && matches!(self.state, State::Done) {
            let outcome = self.translator.outcome();
            self.recorder.deliver_text(seen.last_text.signature().as_ref());
            if let Some(finish) = &seen.finish {
                match outcome {
                    Some(outcome) => self.audit.done(&corrections::as_seen(outcome, finish)),
                    None => self.audit.done(finish),
                }
            }
            if let (Some(asked), Some(outcome)) = (&self.asked, outcome) {
                corrections::store(&asked.0, outcome);
            }
            return Progress::End;
        }
        let seen = self.translator.seen();
        // The opening alone is kept back: as long as nothing else is shown, the turn can be saved.
        if seen.visible || (self.committed && !self.out.is_empty()) {
            Progress::Bytes
        } else {
            self.ping_if_due()
        }
    }

    /// Gemini has completed its answer to this request.
    fn ended(&mut self) {
        let rest =
            if self.attempts.may_go_on() { self.translator.pause(&mut self.out) } else { None };
        self.state = match rest {
            Some(token) => {
                self.going_on = true;
                self.attempts.go_on(&token);
                State::Asking(self.attempts.ask())
            }
            None => {
                self.translator.finish(&mut self.out);
                State::Done
            }
        };
    }

    /// The round is over, and the turn is not.
    fn next_round(&mut self, usage: &Usage) {
        let Some((context, input)) = self.asked.as_deref().cloned() else { return };
        let turns = self.translator.next_turns().unwrap_or_default().to_vec();
        self.audit.corrected(usage);
        let input = Input { corrections: turns, key: self.attempts.key(), ..input };
        self.state = State::Preparing(Box::pin(async move { prepare(&context, &input).await }));
    }

    /// Decides what to do about a failure: again, or the end.
    fn failed(&mut self, failure: &Failure) -> Progress {
        self.state = State::Done;
        // Time spent on waiting is no silence of the upstream's.
        self.deadlines.heard(Instant::now());
        if self.translator.seen().settled && !self.going_on {
            return Progress::Failed(self.attempts.redacted(failure));
        }
        match self.attempts.after(failure) {
            Next::Again { wait } => {
                if !self.going_on {
                    self.attempts.start_over();
                    self.translator
                        .again(Arc::clone(self.attempts.exchange()), self.attempts.ids());
                }
                self.state = if wait.is_zero() {
                    State::Asking(self.attempts.ask())
                } else {
                    State::Waiting(Box::pin(tokio::time::sleep(wait)))
                };
                Progress::Silent
            }
            Next::Give(failure) => Progress::Failed(failure),
        }
    }

    /// The turn has had all the time that there is for it.
    fn took_too_long(&mut self) -> Progress {
        self.state = State::Done;
        let seconds = self.attempts.total().as_secs();
        let message = format!("the turn took longer than the gateway allows ({seconds} s)");
        Progress::Failed(Failure::new(FailureKind::Timeout, message))
    }

    /// Whether the upstream is to send the next thing.
    fn awaits_upstream(&self) -> bool {
        match self.state {
            State::Asking(_) | State::Refused(..) | State::Reading(_) => true,
            State::Waiting(_) | State::Preparing(_) | State::Done => false,
        }
    }

    /// The alarm has rung.
    fn rang(&mut self) -> Progress {
        let progress = match self.deadlines.due(Instant::now(), self.awaits_upstream()) {
            Due::Over => return self.took_too_long(),
            Due::Idle => {
                self.state = State::Done;
                return Progress::Failed(silent(self.attempts.idle()));
            }
            Due::Ping | Due::Nothing(_) => self.ping_if_due(),
        };
        if let Due::Nothing(time) = self.deadlines.due(Instant::now(), self.awaits_upstream()) {
            self.alarm.as_mut().reset((Instant::now() + time).into());
        }
        progress
    }

    /// Shows a sign of life if the client has got nothing for a while.
    fn ping_if_due(&mut self) -> Progress {
        if self.deadlines.due(Instant::now(), self.awaits_upstream()) == Due::Ping {
            self.deadlines.shown(Instant::now());
            self.translator.ping(&mut self.out);
            // A dialect without a sign of life waits on: its error can still be an error status.
            if !self.out.is_empty() {
                return Progress::Bytes;
            }
        }
        Progress::Silent
    }
}

enum Progress {
    /// Nothing to show yet.
    Silent,
    /// There is something to show.
    Bytes,
    /// It is over; what there is to show is there.
    End,
    /// It is over, and the client does not know yet.
    Failed(Failure),
}
