//! Saved conversations and runs.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_core::canon::Turn;
use toolgate_core::tool_loop::{Paused, Unfinished};

use super::{read, write};
use crate::Error;

/// Version of the saved form.
const VERSION: u32 = 1;

/// Turns of a conversation, serialised as Gemini's `Content` objects. A part with a signature also names
/// the `issuer`, because a signature means nothing to another model.
///
/// ```
/// use toolgate::{Message, Request, SavedTurns};
///
/// let request = Request::new("Hi.").assistant("Hello!");
/// let saved = serde_json::to_string(&SavedTurns::new(&request.canon.turns)?)?;
/// assert_eq!(
///     saved,
///     r#"[{"role":"user","parts":[{"text":"Hi."}]},{"role":"model","parts":[{"text":"Hello!"}]}]"#
/// );
/// let turns = serde_json::from_str::<SavedTurns>(&saved)?.turns()?;
/// assert_eq!(turns.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SavedTurns(Vec<Box<RawValue>>);

impl SavedTurns {
    /// Converts turns to the saved form.
    pub fn new(turns: &[Turn<'static>]) -> Result<Self, Error> {
        turns.iter().map(write::content).collect::<Result<_, _>>().map(Self).map_err(Error::Saved)
    }

    /// Converts the saved form to turns.
    pub fn turns(&self) -> Result<Vec<Turn<'static>>, Error> {
        let turn = |(at, raw): (usize, &RawValue)| {
            read::turn(raw.get()).map_err(|error| Error::Saved(format!("content {at}: {error}")))
        };
        self.0.iter().map(|raw| &**raw).enumerate().map(turn).collect()
    }
}

/// A run that waits for results of the caller: [`Response::save`](crate::Response::save) and
/// [`Client::resume_run`](crate::Client::resume_run).
///
/// It holds the conversation. Instructions, tools and settings belong to the program, which passes them
/// again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedRun {
    version: u32,
    /// Turns before the model's open one.
    history: SavedTurns,
    open: SavedPause,
}

/// The model's turn whose calls wait for results.
#[derive(Clone, Serialize, Deserialize)]
struct SavedPause {
    content: Box<RawValue>,
    /// Results that are there already.
    results: Vec<Box<RawValue>>,
    /// Whether the calls were returned because of the round limit.
    at_limit: bool,
}

/// A conversation: [`Chat::save`](crate::Chat::save) and
/// [`Client::resume_chat`](crate::Client::resume_chat).
///
/// It holds the conversation. Instructions, tools and settings belong to the program, which passes them
/// again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedChat {
    version: u32,
    history: SavedTurns,
    full_history: SavedTurns,
    /// The exchange that waits for results: its turns, and the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<(SavedTurns, SavedRun)>,
}

impl SavedRun {
    pub(crate) fn new(
        turns: &[Turn<'static>],
        paused: &Paused,
        why: Unfinished,
    ) -> Result<Self, Error> {
        let open = SavedPause {
            content: write::content(&paused.turn).map_err(Error::Saved)?,
            results: write::results(&paused.results).map_err(Error::Saved)?,
            at_limit: why == Unfinished::Limit,
        };
        Ok(Self { version: VERSION, history: SavedTurns::new(turns)?, open })
    }

    /// Turns before the open one, and the paused turn.
    pub(crate) fn read(&self) -> Result<(Vec<Turn<'static>>, Unfinished, Paused), Error> {
        check(self.version)?;
        let SavedPause { content, results, at_limit } = &self.open;
        let turn = read::turn(content.get()).map_err(Error::Saved)?;
        let results = results.iter().map(|raw| read::result(raw.get()));
        let results = results.collect::<Result<Vec<_>, _>>().map_err(Error::Saved)?;
        let why = if *at_limit { Unfinished::Limit } else { Unfinished::Caller };
        Ok((self.history.turns()?, why, Paused { turn, results }))
    }
}

impl SavedChat {
    pub(crate) fn new(
        history: &[Turn<'static>],
        full_history: &[Turn<'static>],
        open: Option<(&[Turn<'static>], SavedRun)>,
    ) -> Result<Self, Error> {
        let open = match open {
            Some((turns, run)) => Some((SavedTurns::new(turns)?, run)),
            None => None,
        };
        Ok(Self {
            version: VERSION,
            history: SavedTurns::new(history)?,
            full_history: SavedTurns::new(full_history)?,
            open,
        })
    }

    pub(crate) fn read(self) -> Result<OpenedChat, Error> {
        check(self.version)?;
        let open = match self.open {
            Some((turns, run)) => Some((turns.turns()?, run)),
            None => None,
        };
        let (history, full) = (self.history.turns()?, self.full_history.turns()?);
        Ok(OpenedChat { history, full, open })
    }
}

/// Contents of a [`SavedChat`].
pub(crate) struct OpenedChat {
    pub(crate) history: Vec<Turn<'static>>,
    pub(crate) full: Vec<Turn<'static>>,
    pub(crate) open: Option<(Vec<Turn<'static>>, SavedRun)>,
}

/// Shows the number of turns only: they hold signatures.
impl fmt::Debug for SavedTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SavedTurns({})", self.0.len())
    }
}

impl fmt::Debug for SavedPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SavedPause({} results)", self.results.len())
    }
}

fn check(version: u32) -> Result<(), Error> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::Saved(format!("its version is {version}, and this program reads {VERSION}")))
}
