//! `generationConfig`.

use std::borrow::Cow;

use super::request::{camel, reread};
use super::wire;
use crate::canon::{
    BadRequest, Effort, LossCode, Losses, OutputFormat, Request, SchemaForm, Thinking, ThinkingMode,
};
use crate::json::{Fields, Kind, Path, Raw, Text};

/// Fills in the settings. Members without a canonical form are kept as they are: Google adds some
/// every month, and a client that speaks Gemini sends them on purpose.
pub(super) fn decode_generation_config<'a>(
    Fields(members): Fields<'a>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let mut output = Output::default();
    for (key, raw) in members {
        if raw.kind() == Kind::Null {
            continue;
        }
        let key = camel(key);
        let at = at.field(&key);
        let settings = &mut request.settings;
        match &*key {
            "temperature" => settings.temperature = Some(number(&raw, &at)?),
            "topP" => settings.top_p = Some(number(&raw, &at)?),
            "topK" => settings.top_k = Some(number(&raw, &at)?),
            "candidateCount" => {
                settings.candidates = Some(integer(&raw, &at)?);
            }
            "maxOutputTokens" => {
                let most = integer(&raw, &at)?;
                if most < 1 {
                    return Err(at.bad(format!("must be at least 1, not {most}")));
                }
                settings.max_output_tokens = Some(most);
            }
            "seed" => settings.seed = Some(integer(&raw, &at)?),
            "presencePenalty" => settings.presence_penalty = Some(number(&raw, &at)?),
            "frequencyPenalty" => settings.frequency_penalty = Some(number(&raw, &at)?),
            "stopSequences" => settings.stop = strings(raw, &at, losses)?,
            "responseLogprobs" => {
                let on: bool = raw.to().ok_or_else(|| at.bad("expected true or false"))?;
                settings.logprobs = on.then(|| settings.logprobs.unwrap_or(0));
                output.logprobs = Some(on);
            }
            "logprobs" => {
                let count = integer(&raw, &at)?;
                settings.logprobs = (output.logprobs != Some(false)).then_some(count);
            }
            "thinkingConfig" => {
                request.thinking = thinking(&raw, &at, losses)?;
                // Models that are told a level take a budget of the client's own too.
                if request.thinking.budget.is_some() && request.thinking.effort.is_none() {
                    request.gemini_generation.push((Cow::Borrowed("thinkingConfig"), raw));
                }
            }
            "responseMimeType" => {
                output.mime = Some(raw.into_text().ok_or_else(|| at.bad("expected a string"))?);
            }
            "responseSchema" => output.schema = Some(raw),
            "responseJsonSchema" => output.json_schema = Some(raw),
            "responseFormat" => match text_format(&raw) {
                Some(format) => request.output = format,
                None => request.gemini_generation.push((Cow::Borrowed("responseFormat"), raw)),
            },
            _ => request.gemini_generation.push((key.clone(), raw)),
        }
    }
    output.decode(request);
    Ok(())
}

/// The fields that say the form of the answer; only together do they mean something.
#[derive(Default)]
struct Output<'a> {
    mime: Option<Text<'a>>,
    schema: Option<Raw<'a>>,
    json_schema: Option<Raw<'a>>,
    logprobs: Option<bool>,
}

impl<'a> Output<'a> {
    fn decode(self, request: &mut Request<'a>) {
        let mime = self.mime.as_ref().map(Text::decode);
        match (mime.as_deref(), self.json_schema, self.schema) {
            (Some("application/json") | None, Some(schema), _) => {
                request.output = with_schema(schema, SchemaForm::JsonSchema);
            }
            (Some("application/json") | None, None, Some(schema)) => {
                request.output = with_schema(schema, SchemaForm::Gemini);
            }
            (Some("application/json"), None, None) => request.output = OutputFormat::Json,
            (Some("text/plain") | None, None, None) => {}
            // `text/x.enum` and what else there may be.
            (Some(mime), json_schema, schema) => {
                let mut keep = |name, raw: Option<Raw<'a>>| {
                    let kept = raw.map(|raw| (Cow::Borrowed(name), raw));
                    request.gemini_generation.extend(kept);
                };
                keep("responseMimeType", Raw::of(mime));
                keep("responseJsonSchema", json_schema);
                keep("responseSchema", schema);
            }
        }
    }
}

fn with_schema(schema: Raw<'_>, form: SchemaForm) -> OutputFormat<'_> {
    OutputFormat::JsonSchema { name: None, description: None, schema, form }
}

/// `{"text":{"mimeType":"APPLICATION_JSON","schema":{…}}}`, the newest spelling.
fn text_format(raw: &Raw<'_>) -> Option<OutputFormat<'static>> {
    let Fields(formats) = raw.fields()?;
    let [(kind, text)] = formats.as_slice() else { return None };
    let fields = text.fields().filter(|_| kind == "text")?;
    let mime = fields.get("mimeType").or_else(|| fields.get("mime_type"))?.as_text()?;
    let json = ["APPLICATION_JSON", "application/json"].contains(&&*mime.decode());
    json.then(|| match fields.get("schema") {
        Some(schema) => with_schema(schema.clone().into_owned(), SchemaForm::JsonSchema),
        None => OutputFormat::Json,
    })
}

fn thinking<'a>(raw: &Raw<'a>, at: &Path<'_>, losses: &mut Losses) -> Result<Thinking, BadRequest> {
    let config: wire::ThinkingConfig<'a> = reread(raw, at, losses)?;
    let mut thinking = Thinking { show: config.include_thoughts, ..Thinking::default() };
    if let Some(budget) = config.thinking_budget {
        let budget = integer(&budget, &at.field("thinkingBudget"))?;
        thinking.budget = Some(budget);
        thinking.mode = if budget == 0 { ThinkingMode::Off } else { ThinkingMode::On };
    }
    if let Some(level) = config.thinking_level {
        let effort = match level.decode().to_ascii_uppercase().as_str() {
            "" | "THINKING_LEVEL_UNSPECIFIED" => return Ok(thinking),
            "MINIMAL" => Effort::Minimal,
            "LOW" => Effort::Low,
            "MEDIUM" => Effort::Medium,
            "HIGH" => Effort::High,
            other => {
                losses.add(
                    &at.field("thinkingLevel"),
                    LossCode::Ignored,
                    format_args!("a level of `{other}` is not known; the model decides"),
                );
                return Ok(thinking);
            }
        };
        thinking.effort = Some(effort);
        thinking.mode = ThinkingMode::On;
    }
    Ok(thinking)
}

/// Protocol buffers take numbers as strings too.
fn number(raw: &Raw<'_>, at: &Path<'_>) -> Result<f64, BadRequest> {
    let text = raw.as_text();
    let plain = text.as_ref().map(Text::decode);
    let parsed = plain.as_deref().unwrap_or_else(|| raw.get()).parse::<f64>().ok();
    parsed.filter(|number| number.is_finite()).ok_or_else(|| at.bad("expected a number"))
}

fn integer(raw: &Raw<'_>, at: &Path<'_>) -> Result<i64, BadRequest> {
    let text = raw.as_text();
    let plain = text.as_ref().map(Text::decode);
    let plain = plain.as_deref().unwrap_or_else(|| raw.get());
    if let Ok(integer) = plain.parse() {
        return Ok(integer);
    }
    let number = number(raw, at)?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole, and it saturates")]
    if number.fract() == 0.0 { Ok(number as i64) } else { Err(at.bad("expected a whole number")) }
}

fn strings<'a>(
    raw: Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Text<'a>>, BadRequest> {
    if raw.kind() == Kind::Array {
        return reread(&raw, at, losses);
    }
    match raw.into_text() {
        Some(one) => Ok(vec![one]),
        None => Err(at.bad("expected an array of strings")),
    }
}
