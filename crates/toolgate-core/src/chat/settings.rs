//! How to answer: sampling, limits, thinking, the form of the answer.

use std::borrow::Cow;

use super::request::reread;
use super::wire;
use crate::canon::{
    BadRequest, Effort, LossCode, Losses, OutputFormat, Request, SchemaForm, Settings, Thinking,
    ThinkingMode,
};
use crate::json::{Kind, Path, Raw, Text};

/// Fills in all that is neither a message nor a tool.
pub(super) fn decode_settings<'a>(
    mut wire: wire::Request<'a>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let root = Path::Root;
    request.output = output_format(wire.response_format.take(), &root.field("response_format"))?;
    let google = [wire.google.take(), wire.extra_body.take().and_then(|extra| extra.google)];
    request.thinking = thinking(&wire, google.iter().flatten(), losses);
    for google in google.into_iter().flatten() {
        let copied =
            [("cachedContent", google.cached_content), ("safetySettings", google.safety_settings)];
        request
            .gemini
            .extend(copied.into_iter().filter_map(|(key, raw)| Some((Cow::Borrowed(key), raw?))));
    }
    report_ignored(&wire, losses);
    if wants_pictures(&wire) {
        request
            .gemini_generation
            .extend(Raw::of(&["TEXT", "IMAGE"]).map(|raw| ("responseModalities".into(), raw)));
    }
    request.settings = Settings {
        max_output_tokens: max_tokens(&wire)?,
        temperature: wire.temperature,
        top_p: wire.top_p,
        top_k: wire.top_k,
        stop: stop(wire.stop, &root.field("stop"), losses)?,
        seed: wire.seed,
        presence_penalty: wire.presence_penalty,
        frequency_penalty: wire.frequency_penalty,
        candidates: candidates(wire.n)?,
        // There is nothing in the answer to give them on with.
        logprobs: None,
    };
    Ok(())
}

/// The newer name counts.
fn max_tokens(wire: &wire::Request<'_>) -> Result<Option<i64>, BadRequest> {
    let (name, most) = match wire.max_completion_tokens {
        Some(most) => ("max_completion_tokens", Some(most)),
        None => ("max_tokens", wire.max_tokens),
    };
    match most {
        Some(most) if most < 1 => {
            Err(Path::Root.field(name).bad(format!("must be at least 1, not {most}")))
        }
        Some(_) | None => Ok(most),
    }
}

fn candidates(n: Option<i64>) -> Result<Option<i64>, BadRequest> {
    match n {
        Some(n) if n < 1 => Err(Path::Root.field("n").bad(format!("must be at least 1, not {n}"))),
        Some(_) | None => Ok(n),
    }
}

fn stop<'a>(
    stop: Option<Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Text<'a>>, BadRequest> {
    match stop {
        None => Ok(Vec::new()),
        Some(raw) if raw.kind() == Kind::Array => reread(&raw, at, losses),
        Some(raw) => match raw.into_text() {
            Some(text) => Ok(vec![text]),
            None => Err(at.bad("expected a string or an array of strings")),
        },
    }
}

fn output_format<'a>(
    format: Option<wire::ResponseFormat<'a>>,
    at: &Path<'_>,
) -> Result<OutputFormat<'a>, BadRequest> {
    let Some(format) = format else { return Ok(OutputFormat::Text) };
    let kind = format.kind.as_ref().map(Text::decode);
    let (name, description, schema) = match (kind.as_deref(), format.json_schema) {
        (Some("text"), _) => return Ok(OutputFormat::Text),
        (Some("json_object"), _) => (None, None, format.schema),
        (Some("json_schema"), Some(json)) => {
            (json.name, json.description, json.schema.or(format.schema))
        }
        (Some("json_schema"), None) if format.schema.is_none() => {
            return Err(at.field("json_schema").bad("a schema is needed"));
        }
        (Some("json_schema"), None) => (None, None, format.schema),
        (Some(_) | None, _) => {
            return Err(at.field("type").bad("expected text, json_object or json_schema"));
        }
    };
    Ok(match schema {
        Some(schema) => {
            OutputFormat::JsonSchema { name, description, schema, form: SchemaForm::JsonSchema }
        }
        None => OutputFormat::Json,
    })
}

/// Thinking can be asked for in OpenAI's way, in Google's, and in those of other vendors whose
/// clients are pointed at us; the last one in this order counts.
fn thinking<'a>(
    wire: &wire::Request<'a>,
    google: impl Iterator<Item = &'a wire::Google<'a>>,
    losses: &mut Losses,
) -> Thinking {
    let root = Path::Root;
    let mut asked = Asked::default();
    if let Some(on) = wire.enable_thinking {
        asked.switch(on);
    }
    if let Some(budget) = wire.thinking_budget {
        asked.budget(budget);
    }
    if let Some(thinking) = &wire.thinking {
        if let Some(kind) = &thinking.kind {
            asked.switch(kind.decode() != "disabled");
        }
        if let Some(budget) = thinking.budget_tokens {
            asked.budget(budget);
        }
    }
    if let Some(reasoning) = &wire.reasoning {
        if let Some(on) = reasoning.enabled {
            asked.switch(on);
        }
        if let Some(budget) = reasoning.max_tokens {
            asked.budget(budget);
        }
        if let Some(effort) = &reasoning.effort {
            asked.effort(effort, &root.field("reasoning").field("effort"), losses);
        }
        if let Some(exclude) = reasoning.exclude {
            asked.0.show = Some(!exclude);
        }
    }
    if let Some(effort) = &wire.reasoning_effort {
        asked.effort(effort, &root.field("reasoning_effort"), losses);
    }
    if let Some(include) = wire.include_reasoning {
        asked.0.show = Some(include);
    }
    for config in google.filter_map(|google| google.thinking_config.as_ref()) {
        if let Some(budget) = config.thinking_budget {
            asked.budget(budget);
        }
        if let Some(level) = &config.thinking_level {
            let at = root.field("google");
            let at = at.field("thinking_config");
            asked.effort(level, &at.field("thinking_level"), losses);
        }
        if let Some(include) = config.include_thoughts {
            asked.0.show = Some(include);
        }
    }
    asked.0
}

/// Settings read so far.
#[derive(Default)]
struct Asked(Thinking);

impl Asked {
    fn switch(&mut self, on: bool) {
        self.0.mode = if on { ThinkingMode::On } else { ThinkingMode::Off };
        self.0.show = Some(on);
    }

    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    fn budget(&mut self, budget: f64) {
        self.switch(budget != 0.0);
        self.0.budget = Some(budget as i64);
    }

    fn effort(&mut self, word: &Text<'_>, at: &Path<'_>, losses: &mut Losses) {
        let effort = match word.decode().to_ascii_lowercase().as_str() {
            "none" => Effort::None,
            "minimal" => Effort::Minimal,
            "low" => Effort::Low,
            "medium" => Effort::Medium,
            "high" => Effort::High,
            "xhigh" => Effort::XHigh,
            "max" => Effort::Max,
            other => {
                losses.add(
                    at,
                    LossCode::Ignored,
                    format_args!("an effort of `{other}` is not known; the model decides"),
                );
                return;
            }
        };
        self.switch(effort != Effort::None);
        self.0.effort = Some(effort);
    }
}

fn wants_pictures(wire: &wire::Request<'_>) -> bool {
    wire.modalities.iter().flatten().any(|kind| kind.decode() == "image")
}

/// Names the fields whose meaning is known and has no equivalent, where that changes the answer.
fn report_ignored(wire: &wire::Request<'_>, losses: &mut Losses) {
    let mut ignored = |name: &str, detail: &str| {
        losses.add(&Path::Root.field(name), LossCode::Ignored, detail);
    };
    if wire.logit_bias.as_ref().is_some_and(|raw| raw.compact() != "{}") {
        ignored("logit_bias", "Gemini cannot weigh single tokens");
    }
    if wire.logprobs == Some(true) {
        ignored("logprobs", "the answer has no probabilities");
    }
    if wire.n.is_some_and(|n| n > 1) {
        ignored("n", "one answer is given");
    }
    if wire.store == Some(true) {
        ignored("store", "completions are not kept; Responses are");
    }
    if wire.prediction.is_some() {
        ignored("prediction", "Gemini cannot be told what will come; it only takes longer");
    }
    if wire.verbosity.as_ref().is_some_and(|word| word.decode() != "medium") {
        ignored("verbosity", "Gemini has no such setting; say it in the instructions");
    }
    if wire.audio.is_some() || wire.modalities.iter().flatten().any(|kind| kind.decode() == "audio")
    {
        ignored("modalities", "the answer is not spoken");
    }
    let tier = wire.service_tier.as_ref().map(Text::decode);
    if tier.is_some_and(|tier| !matches!(&*tier, "auto" | "default" | "standard")) {
        ignored("service_tier", "the gateway's own tier is used");
    }
}
