//! What each model accepts.
//!
//! Gemini's rules come with the model, not with the version of the API. [`Profile::of`] looks a
//! target up in one table: behaviours down, generations of models across.

use crate::canon::{Backend, Target};

/// Models that behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Before 2.5: 1.0, 1.5, 2.0, and Gemma.
    Legacy,
    /// The 2.5 family.
    V2_5,
    /// 3, 3.1 and whatever comes before 3.5.
    V3,
    /// 3.5, without its flash-lite.
    V3_5,
    /// 3.5-flash-lite and 3.6.
    V3_6,
    /// 3.7 and everything newer, and names that say no version.
    V3_7,
}

/// Features and limits of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Which models it is like.
    pub generation: Generation,
    /// The first call of each step of the current turn must carry a signature.
    pub signatures_required: bool,
    /// Calls and their responses carry ids, the same on both. Otherwise neither does.
    pub call_ids: bool,
    /// A response that does not match its call by id and name makes the model fall silent.
    pub strict_responses: bool,
    /// The conversation may end with the model's words (a prefill).
    pub trailing_model_turn: bool,
    /// `"role":"function"` is understood. We always say `user`.
    pub function_role: bool,
    /// Temperature, top-p and top-k are accepted, and make no difference.
    pub sampling_ignored: bool,
    /// How much the model thinks is said in this way.
    pub thinking: ThinkingControl,
    /// More than one answer may be asked for.
    pub multiple_candidates: bool,
    /// Presence and frequency penalties are accepted.
    pub penalties: bool,
    /// Probabilities of tokens may be asked for.
    pub logprobs: bool,
    /// JSON output may be asked for beside tools, as long as no call is forced (mode `ANY`).
    pub json_beside_tools: bool,
    /// How functions and tools of Gemini's own go together.
    pub mixing: Mixing,
    /// `toolCall` and `toolResponse` parts may be sent back.
    pub server_parts: bool,
    /// A function's response may hold pictures and documents (`functionResponse.parts`).
    pub response_media: bool,
    /// The longest function name. 128 has been measured, 64 is what every back end takes.
    pub name_limit: usize,
    /// `parametersJsonSchema` is understood; otherwise only `parameters`.
    pub json_schema: bool,
    /// `streamFunctionCallArguments` is understood.
    pub argument_streaming: bool,
    /// The largest `maxOutputTokens` that is not refused; `None` where a larger one is harmless.
    pub output_limit: Option<i64>,
}

/// How a client says how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingControl {
    /// Not at all: the model does not think, or does not take orders.
    Unavailable,
    /// `thinkingBudget`, in tokens; −1 leaves it to the model.
    Budget {
        /// The smallest budget above 0.
        min: i64,
        /// The largest.
        max: i64,
        /// Whether 0 switches thinking off.
        off: bool,
        /// Whether thinking is off when nothing is said.
        off_by_default: bool,
    },
    /// `thinkingLevel`. Thinking cannot be switched off.
    Level {
        /// Whether `MINIMAL` is a level; otherwise `LOW` is the lowest.
        minimal: bool,
    },
}

/// How functions and tools of Gemini's own go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// Not in one request.
    Refused,
    /// With `toolConfig.includeServerSideToolInvocations`, which rules out mode `AUTO`.
    Flag,
    /// Without further ado; the flag is an unknown field.
    Plain,
}

/// Where something holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Nowhere,
    Vertex,
    Developer,
    Everywhere,
}

use Where::{Developer as DEV, Everywhere as YES, Nowhere as NO, Vertex as VTX};

type Row = [Where; 6];

//                                Legacy 2.5  3    3.5  3.6  3.7
const SIGNATURES_REQUIRED: Row = [NO, NO, YES, YES, YES, YES];
const CALL_IDS: Row = [NO, NO, YES, YES, YES, YES];
const STRICT_RESPONSES: Row = [NO, NO, NO, YES, YES, YES];
const TRAILING_MODEL_TURN: Row = [YES, YES, YES, YES, NO, NO];
const FUNCTION_ROLE: Row = [YES, YES, YES, YES, NO, NO];
const SAMPLING_IGNORED: Row = [NO, NO, NO, NO, YES, YES];
const MULTIPLE_CANDIDATES: Row = [YES, YES, NO, NO, NO, NO];
const PENALTIES: Row = [YES, VTX, VTX, VTX, VTX, VTX];
const LOGPROBS: Row = [VTX, VTX, VTX, VTX, VTX, VTX];
const JSON_BESIDE_TOOLS: Row = [NO, NO, YES, YES, YES, YES];
const MIXED_TOOLS: Row = [NO, NO, YES, YES, YES, YES];
const SERVER_PARTS: Row = [NO, NO, DEV, DEV, DEV, DEV];
const RESPONSE_MEDIA: Row = [NO, NO, YES, YES, YES, YES];
const JSON_SCHEMA: Row = [NO, YES, YES, YES, YES, YES];
const ARGUMENT_STREAMING: Row = [NO, NO, VTX, VTX, VTX, VTX];

/// Names up to this length pass everywhere.
pub(super) const NAME_LIMIT: usize = 64;

impl Profile {
    /// What this target accepts.
    ///
    /// ```
    /// use toolgate_core::upstream::generate_content::{Generation, Profile};
    /// use toolgate_core::canon::{Backend, Target};
    ///
    /// let target = Target { model: "gemini-9-xenon".into(), backend: Backend::Developer };
    /// assert_eq!(Profile::of(&target).generation, Generation::V3_7);
    /// ```
    pub fn of(target: &Target) -> Self {
        let model = Model::parse(&target.model);
        let generation = model.generation();
        let is = |row: Row| match row[generation as usize] {
            Where::Nowhere => false,
            Where::Everywhere => true,
            Where::Vertex => target.backend == Backend::Vertex,
            Where::Developer => target.backend == Backend::Developer,
        };
        Self {
            generation,
            signatures_required: is(SIGNATURES_REQUIRED),
            call_ids: is(CALL_IDS),
            strict_responses: is(STRICT_RESPONSES),
            trailing_model_turn: is(TRAILING_MODEL_TURN),
            function_role: is(FUNCTION_ROLE),
            sampling_ignored: is(SAMPLING_IGNORED),
            thinking: model.thinking(generation),
            multiple_candidates: is(MULTIPLE_CANDIDATES),
            penalties: is(PENALTIES),
            logprobs: is(LOGPROBS),
            json_beside_tools: is(JSON_BESIDE_TOOLS),
            mixing: match (is(MIXED_TOOLS), target.backend) {
                (false, _) => Mixing::Refused,
                (true, Backend::Developer) => Mixing::Flag,
                (true, Backend::Vertex) => Mixing::Plain,
            },
            server_parts: is(SERVER_PARTS),
            response_media: is(RESPONSE_MEDIA),
            name_limit: NAME_LIMIT,
            json_schema: is(JSON_SCHEMA),
            argument_streaming: is(ARGUMENT_STREAMING),
            output_limit: match (target.backend, generation) {
                // Vertex refuses a limit above the model's; the Developer API clamps it.
                (Backend::Vertex, Generation::Legacy) => Some(8_192),
                (
                    Backend::Vertex,
                    Generation::V2_5 | Generation::V3 | Generation::V3_5 | Generation::V3_6,
                ) => Some(65_536),
                (Backend::Vertex, Generation::V3_7) | (Backend::Developer, _) => None,
            },
        }
    }
}

/// The model's own name, without the collection that it is in.
pub(super) fn bare(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}

/// Facts that a model's name tells.
struct Model {
    version: Option<(u32, u32)>,
    line: Line,
    family: Family,
    tuned: bool,
}

/// Which line of models.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Gemini,
    Gemma,
    /// Of the 2.5 age, whatever number they bear.
    Robotics,
    /// Pictures or speech: no thinking to be steered before 3.
    Media,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Pro,
    Flash,
    FlashLite,
}

impl Model {
    fn parse(model: &str) -> Self {
        let tuned = model.starts_with("tunedModels/") || model.contains("/endpoints/");
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let tokens = || name.split(['-', '@', '_']);
        let has = |word: &str| tokens().any(|token| token == word);
        Self {
            version: tokens().skip_while(|token| *token != "gemini").find_map(version),
            line: match () {
                () if name.starts_with("gemma") => Line::Gemma,
                () if has("robotics") => Line::Robotics,
                () if has("image") || has("tts") => Line::Media,
                () => Line::Gemini,
            },
            family: match () {
                () if has("lite") => Family::FlashLite,
                () if has("pro") => Family::Pro,
                () => Family::Flash,
            },
            tuned,
        }
    }

    fn generation(&self) -> Generation {
        match (self.line, self.version) {
            (Line::Gemma, _) => Generation::Legacy,
            (Line::Robotics, Some((0..3, _)) | None) => Generation::V2_5,
            (_, Some((0..=1, _) | (2, 0..=4))) => Generation::Legacy,
            (_, Some((2, _))) => Generation::V2_5,
            (_, Some((3, 0..=4))) => Generation::V3,
            (_, Some((3, 5))) if self.family != Family::FlashLite => Generation::V3_5,
            (_, Some((3, 5..=6))) => Generation::V3_6,
            (_, Some(_)) => Generation::V3_7,
            // The name of a tuned model does not tell its base model. The 2.5 rules are the ones that
            // hold, or do no harm, on most.
            (_, None) if self.tuned => Generation::V2_5,
            (_, None) => Generation::V3_7,
        }
    }

    fn thinking(&self, generation: Generation) -> ThinkingControl {
        let (off, off_by_default) = (true, false);
        match generation {
            Generation::Legacy => ThinkingControl::Unavailable,
            Generation::V2_5 if self.line == Line::Media => ThinkingControl::Unavailable,
            Generation::V2_5 => match self.family {
                Family::Pro => {
                    ThinkingControl::Budget { min: 128, max: 32_768, off: false, off_by_default }
                }
                Family::Flash => {
                    ThinkingControl::Budget { min: 1, max: 24_576, off, off_by_default }
                }
                Family::FlashLite => {
                    ThinkingControl::Budget { min: 512, max: 24_576, off, off_by_default: true }
                }
            },
            Generation::V3 | Generation::V3_5 | Generation::V3_6 => {
                ThinkingControl::Level { minimal: self.family != Family::Pro }
            }
            Generation::V3_7 => ThinkingControl::Level { minimal: false },
        }
    }
}

/// Reads `3`, `2.5`, `3.1`; not `09`, `2025` or `001`, which are dates and revisions.
fn version(token: &str) -> Option<(u32, u32)> {
    let (major, minor) = token.split_once('.').unwrap_or((token, "0"));
    let digits = |text: &str| {
        (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(major) || !digits(minor) || (major.starts_with('0') && major.len() > 1) {
        return None;
    }
    Some((major.parse().ok()?, minor.parse().ok()?))
}
