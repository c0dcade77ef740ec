//! The body as a whole.

use super::contents::write_contents;
use super::settings::write_generation_config;
use super::toolbox::Toolbox;
use super::tools::{OF_TOOL_CONFIG, write_tool_config, write_tools};
use super::{EncodeOptions, Encoded};
use crate::canon::{
    Backend, BadRequest, CallInput, Loss, LossCode, Losses, MediaSource, Part, Request, ResultPart,
    Target, Tool,
};
use crate::json::Kind;
use crate::json::write::ObjectWriter;
use crate::upstream::generate_content::history::{Conversation, Rules};
use crate::upstream::generate_content::names::Aliases;
use crate::upstream::generate_content::profile::bare;
use crate::upstream::generate_content::signatures::Ledger;
use crate::upstream::generate_content::{Exchange, Profile};

/// Writes the body of a `generateContent` or `streamGenerateContent` request.
///
/// ```
/// use toolgate_core::canon::{Part, Request, Role, Turn, Backend, Target};
/// use toolgate_core::upstream::generate_content::{EncodeOptions, encode_request};
/// use toolgate_core::{json::Text, schema::Cache};
///
/// let turn = Turn { role: Role::User, parts: vec![Part::text(Text::new("Hi."))] };
/// let request = Request { turns: vec![turn], ..Request::default() };
/// let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
/// let cache = Cache::default();
/// let encoded = encode_request(&request, &target, &EncodeOptions::new(&cache))?;
/// assert_eq!(encoded.body, br#"{"contents":[{"role":"user","parts":[{"text":"Hi."}]}]}"#);
/// # Ok::<(), toolgate_core::canon::BadRequest>(())
/// ```
///
/// Signatures are best placed before ([`Request::place_signatures`]); where they are not, it is
/// done here, on a copy.
pub fn encode_request(
    request: &Request<'_>,
    target: &Target,
    options: &EncodeOptions<'_>,
) -> Result<Encoded, BadRequest> {
    placed(request, target, options, Form::Generate)
}

/// Writes the body of a `countTokens` request.
///
/// The Developer API takes the whole request inside of another, with the model's name in it.
/// Vertex takes what can be counted and refuses the rest.
pub fn encode_count_tokens(
    request: &Request<'_>,
    target: &Target,
    options: &EncodeOptions<'_>,
) -> Result<Encoded, BadRequest> {
    placed(request, target, options, Form::Count)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Generate,
    Count,
}

fn placed(
    request: &Request<'_>,
    target: &Target,
    options: &EncodeOptions<'_>,
    form: Form,
) -> Result<Encoded, BadRequest> {
    if !request.has_loose_signatures() {
        return encode(request, target, options, form, Losses::new());
    }
    let mut request = request.clone();
    let losses = request.place_signatures();
    encode(&request, target, options, form, losses)
}

fn encode(
    request: &Request<'_>,
    target: &Target,
    options: &EncodeOptions<'_>,
    form: Form,
    mut losses: Losses,
) -> Result<Encoded, BadRequest> {
    let profile = Profile::of(target);
    let names = Aliases::of(request);
    let rules = Rules { target, profile: &profile, learned: options.learned, names: &names };
    let toolbox = Toolbox::of(request, &rules, options, &mut losses)?;
    let mut ledger = Ledger::new(request, target);
    let conversation = Conversation::of(request, rules, &mut ledger, &mut losses)?;

    let mut body = Vec::with_capacity(size_hint(request));
    let whole = form == Form::Generate || target.backend == Backend::Developer;
    let mut write_members = |out: &mut ObjectWriter<'_>| {
        write_system(out, request, &toolbox);
        write_tools(out, &toolbox);
        if whole {
            let server_parts = conversation.server_parts;
            write_tool_config(out, request, &rules, &toolbox, server_parts, &mut losses);
        }
        write_contents(out, &conversation, &rules, &mut losses);
        write_generation_config(out, request, &rules, &toolbox, &mut losses)?;
        if whole {
            write_own_fields(out, request, target, &mut losses);
        }
        Ok::<(), BadRequest>(())
    };
    let mut root = ObjectWriter::new(&mut body);
    if form == Form::Count && target.backend == Backend::Developer {
        let mut wrapped = root.object("generateContentRequest");
        wrapped.string("model", &model_path(&target.model));
        write_members(&mut wrapped)?;
    } else {
        write_members(&mut root)?;
    }
    drop(root);

    losses.append(&mut ledger.losses);
    let exchange = Exchange {
        target: target.clone(),
        one_call: request.parallel_calls == Some(false),
        answer_function: toolbox.answer_function().cloned(),
        tools: toolbox.entries,
    };
    Ok(Encoded { body, exchange, losses, signatures: ledger.count })
}

/// `models/…`, unless the name already has its collection.
fn model_path(model: &str) -> String {
    let model = bare(model);
    if model.contains('/') { model.to_owned() } else { format!("models/{model}") }
}

fn write_system(body: &mut ObjectWriter<'_>, request: &Request<'_>, toolbox: &Toolbox<'_>) {
    let mut texts = request.system.iter().filter(|text| !text.is_empty()).peekable();
    if texts.peek().is_none() && toolbox.instruction.is_none() {
        return;
    }
    let mut instruction = body.object("systemInstruction");
    let mut parts = instruction.array("parts");
    for text in texts {
        parts.object().text("text", text);
    }
    if let Some(instruction) = &toolbox.instruction {
        parts.object().string("text", instruction);
    }
}

/// Fields that are written from the request itself.
const WRITTEN: [&str; 6] =
    ["contents", "generationConfig", "model", "systemInstruction", "toolConfig", "tools"];
const DEVELOPER_ONLY: [&str; 2] = ["serviceTier", "store"];
const VERTEX_ONLY: [&str; 3] = ["labels", "modelArmorConfig", "outputConfig"];

/// Fields that only Gemini knows. An unknown field is refused, so each goes where it is known.
fn write_own_fields(
    out: &mut ObjectWriter<'_>,
    request: &Request<'_>,
    target: &Target,
    losses: &mut Losses,
) {
    for (at, (name, value)) in request.gemini.iter().enumerate() {
        let doubled = request.gemini[..at].iter().any(|(earlier, _)| earlier == name);
        if value.kind() == Kind::Null
            || WRITTEN.contains(&&**name)
            || name.starts_with(OF_TOOL_CONFIG)
            || doubled
        {
            continue;
        }
        let elsewhere = match target.backend {
            Backend::Developer => VERTEX_ONLY.contains(&&**name),
            Backend::Vertex => DEVELOPER_ONLY.contains(&&**name),
        };
        if elsewhere {
            losses.add_with(LossCode::Ignored, || Loss {
                at: name.clone().into_owned(),
                code: LossCode::Ignored,
                detail: "this back end does not know the field; it was left out".to_owned(),
                tool: None,
            });
            continue;
        }
        out.raw(name, value);
    }
}

/// About how long the body will be, so that it is not moved while it grows.
fn size_hint(request: &Request<'_>) -> usize {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts).map(|part| {
        96 + match part {
            Part::Text { text, .. } | Part::Thought { text, .. } => text.literal().len(),
            Part::Media(media) => source_len(&media.source),
            Part::Call(call) => match &call.input {
                CallInput::Json(raw) => raw.get().len(),
                CallInput::Text(text) => text.literal().len(),
            },
            Part::Result(result) => result
                .content
                .iter()
                .map(|part| match part {
                    ResultPart::Text(text) => text.literal().len(),
                    ResultPart::Json(raw) => raw.get().len(),
                    ResultPart::Media(media) => source_len(&media.source),
                })
                .sum(),
            Part::Sealed(_) => 0,
            Part::Gemini(raw) => raw.get().len(),
        }
    });
    let signatures = request.calls().filter_map(|call| call.signature.as_ref());
    let tools = request.tools.iter().map(|tool| match tool {
        Tool::Function(function) => {
            let schema = function.parameters.as_ref().map_or(0, |raw| raw.get().len());
            96 + schema + function.description.as_ref().map_or(0, |text| text.literal().len())
        }
        Tool::Freeform { description, grammar, .. } => {
            let texts = description.iter().chain(grammar);
            384 + texts.map(|text| text.literal().len()).sum::<usize>()
        }
        Tool::Server(_) => 64,
    });
    let system = request.system.iter().map(|text| text.literal().len() + 16);
    512 + parts.sum::<usize>()
        + signatures.map(|signature| signature.expose().len()).sum::<usize>()
        + tools.sum::<usize>()
        + system.sum::<usize>()
}

fn source_len(source: &MediaSource<'_>) -> usize {
    match source {
        MediaSource::Inline(text) | MediaSource::Uri(text) => text.literal().len(),
    }
}
