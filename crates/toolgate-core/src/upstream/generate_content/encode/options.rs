//! Input and output of the encoder.

use std::collections::BTreeSet;

use crate::canon::{Losses, ToolName};
use crate::schema::Cache;
use crate::upstream::generate_content::{Exchange, SignatureCount};

/// Input of the encoder beside the request.
#[derive(Clone, Copy, Debug)]
pub struct EncodeOptions<'a> {
    /// Schemas compiled before.
    pub cache: &'a Cache,
    /// A tool whose schema is not valid makes the request an error, instead of being mended.
    pub strict: bool,
    /// Whether tools are sent at all.
    pub tools_enabled: bool,
    /// In which form schemas are sent.
    pub schema: SchemaPolicy,
    /// Features that this target has refused before.
    pub learned: &'a Learned,
}

/// In which form the schemas of functions are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// As the target likes best: JSON Schema where it is understood, and a Gemini client's own
    /// `Schema` as it is.
    #[default]
    Auto,
    /// `parametersJsonSchema`, lightly cleaned.
    JsonSchema,
    /// `parametersJsonSchema`, as the client wrote it.
    Raw,
    /// `parameters`, fully lowered.
    Parameters,
}

/// Features that a target has refused before. The default is none.
///
/// [`learn`](Self::learn) fills it from Google's errors, so that a back end which is behind or ahead
/// of the [`Profile`](crate::upstream::generate_content::Profile) costs one refused request, not all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// `id` on calls and responses.
    pub no_call_ids: bool,
    /// `parametersJsonSchema`.
    pub no_json_schema: bool,
    /// `functionResponse.parts`.
    pub no_response_media: bool,
    /// Gemini's own tools beside functions.
    pub no_mixed_tools: bool,
    /// JSON output beside tools.
    pub no_json_beside_tools: bool,
    /// Functions, by the client's name for them.
    pub tools: BTreeSet<ToolName<'static>>,
    /// Members of `generationConfig`, in camelCase.
    pub generation: BTreeSet<String>,
}

impl Learned {
    /// Takes over what another lesson says.
    pub fn add(&mut self, other: &Self) {
        self.no_call_ids |= other.no_call_ids;
        self.no_json_schema |= other.no_json_schema;
        self.no_response_media |= other.no_response_media;
        self.no_mixed_tools |= other.no_mixed_tools;
        self.no_json_beside_tools |= other.no_json_beside_tools;
        self.tools.extend(other.tools.iter().cloned());
        self.generation.extend(other.generation.iter().cloned());
    }
}

static NOTHING: Learned = Learned {
    no_call_ids: false,
    no_json_schema: false,
    no_response_media: false,
    no_mixed_tools: false,
    no_json_beside_tools: false,
    tools: BTreeSet::new(),
    generation: BTreeSet::new(),
};

impl<'a> EncodeOptions<'a> {
    /// Permissive, with tools, and with nothing learned.
    pub fn new(cache: &'a Cache) -> Self {
        Self {
            cache,
            strict: false,
            tools_enabled: true,
            schema: SchemaPolicy::Auto,
            learned: &NOTHING,
        }
    }
}

/// A request in Gemini's form.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The JSON body.
    pub body: Vec<u8>,
    /// Facts that the decoder of the answer needs.
    pub exchange: Exchange,
    /// What Gemini will not see as the client said it. Places in the conversation are written
    /// `turns[2].parts[0]`, counted in the canonical request.
    pub losses: Losses,
    /// How many signatures the body carries.
    pub signatures: SignatureCount,
}
