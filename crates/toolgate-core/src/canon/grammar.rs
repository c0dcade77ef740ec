//! Which event may follow which.

use super::Event;

/// Checks a stream of events against the grammar of [`Event`]'s module.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    started: bool,
    ended: bool,
    run: Run,
}

/// The text that a signature may refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Run {
    #[default]
    None,
    Text(usize),
    Thought(usize),
}

/// An event that may not stand where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Ungrammatical(&'static str);

impl Grammar {
    /// Takes the next event.
    pub fn feed(&mut self, event: &Event<'_>) -> Result<(), Ungrammatical> {
        if self.ended {
            return Err(Ungrammatical("an event after the end"));
        }
        match event {
            Event::Start(_) if self.started => return Err(Ungrammatical("a second start")),
            Event::Start(_) => self.started = true,
            Event::Fail(_) => self.ended = true,
            _ if !self.started => return Err(Ungrammatical("an event before the start")),
            Event::Text(text) | Event::Thought(text) if text.is_empty() => {
                return Err(Ungrammatical("an empty text"));
            }
            Event::Text(text) => {
                let before = if let Run::Text(len) = self.run { len } else { 0 };
                self.run = Run::Text(before + text.decode().len());
            }
            Event::Thought(text) => {
                let before = if let Run::Thought(len) = self.run { len } else { 0 };
                self.run = Run::Thought(before + text.decode().len());
            }
            Event::Signature { thought, len, .. } => {
                let available = match (self.run, thought) {
                    (Run::Text(len), false) | (Run::Thought(len), true) => len,
                    _ => 0,
                };
                if *len > available {
                    return Err(Ungrammatical("a signature of more text than there was"));
                }
                self.run = Run::None;
            }
            Event::Call(_) | Event::Media(_) | Event::Server(_) | Event::Grounding(_) => {
                self.run = Run::None;
            }
            Event::Finish(_) => self.ended = true,
        }
        Ok(())
    }

    /// Says whether the stream has ended as every stream must.
    pub fn finish(&self) -> Result<(), Ungrammatical> {
        if self.ended { Ok(()) } else { Err(Ungrammatical("no end")) }
    }
}
