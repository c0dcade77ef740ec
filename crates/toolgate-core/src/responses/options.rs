//! Options that Gemini has nothing for: read, so that a broken one is told as OpenAI tells it.

use serde::Deserialize;

use super::fields::required;
use super::wire::{Known, Str};
use crate::canon::{BadRequest, LossCode, Losses};
use crate::json::{self, Kind, Path, Raw};

/// `stream_options`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamOptions {
    #[serde(rename = "include_obfuscation")]
    _include_obfuscation: Option<bool>,
}

/// `prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Prompt<'a> {
    #[serde(rename = "id", borrow)]
    _id: Option<Str<'a>>,
    #[serde(rename = "version")]
    _version: Option<Str<'a>>,
    #[serde(rename = "variables")]
    _variables: Option<Known>,
}

/// `moderation`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Moderation<'a> {
    #[serde(rename = "model", borrow)]
    _model: Option<Str<'a>>,
    #[serde(rename = "policy")]
    _policy: Option<Known>,
}

/// `prompt_cache_options`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CacheOptions<'a> {
    #[serde(rename = "mode", borrow)]
    _mode: Option<Str<'a>>,
    #[serde(rename = "ttl")]
    _ttl: Option<Str<'a>>,
}

/// An entry of `context_management`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Management<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Raw<'a>>,
    #[serde(rename = "compact_threshold")]
    _compact_threshold: Option<i64>,
}

/// Reads `context_management`: entries that have a type.
pub(super) fn check_management(
    management: &Raw<'_>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let root = Path::Root;
    let at = root.field("context_management");
    if management.kind() != Kind::Array {
        return Err(at.bad("expected an array"));
    }
    let entries: Vec<Management<'_>> = json::read(management.get(), &at, losses)?;
    for (index, entry) in entries.iter().enumerate() {
        required(entry.kind.as_ref(), &at.index(index), "type")?;
    }
    if !entries.is_empty() {
        let why = "a conversation is summed up only where its input ends in a compaction_trigger";
        losses.add(&at, LossCode::Ignored, why);
    }
    Ok(())
}
