//! `generationConfig`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::output::Output;
use super::thinking::thinking_config;
use super::toolbox::{Toolbox, note};
use crate::canon::{Backend, BadRequest, LossCode, Losses, Request};
use crate::json::Kind;
use crate::json::write::{self, ArrayWriter, ObjectWriter};
use crate::upstream::generate_content::history::{Rules, camel};
use crate::upstream::generate_content::{Learned, Profile};

/// More are refused.
const MAX_STOPS: usize = 5;
/// More alternatives for a token are refused.
const MAX_LOGPROBS: i64 = 20;
/// Maximum number of candidates in one answer.
const MAX_CANDIDATES: i64 = 8;
/// The members that only one back end knows.
const DEVELOPER_ONLY: [&str; 1] = ["enableEnhancedCivicAnswers"];
const VERTEX_ONLY: [&str; 4] =
    ["audioTimestamp", "modelConfig", "modelSelectionConfig", "routingConfig"];

/// Writes `"generationConfig":{…}` where it has members.
pub(super) fn write_generation_config(
    body: &mut ObjectWriter<'_>,
    request: &Request<'_>,
    rules: &Rules<'_>,
    toolbox: &Toolbox<'_>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let mut json = Vec::new();
    let mut config = Config {
        out: ObjectWriter::new(&mut json),
        learned: rules.learned,
        written: Vec::new(),
        losses,
    };
    config.limits(request, rules.profile)?;
    config.sampling(request, rules);
    config.refused(request, rules.profile);
    config.output(&toolbox.output);
    config.thinking(request, rules.profile);
    config.own_members(request, rules.target.backend);
    let is_empty = config.out.is_empty();
    drop(config);
    if !is_empty {
        body.key("generationConfig").extend_from_slice(&json);
    }
    Ok(())
}

struct Config<'o> {
    out: ObjectWriter<'o>,
    learned: &'o Learned,
    written: Vec<&'static str>,
    losses: &'o mut Losses,
}

impl Config<'_> {
    /// Begins a member. Returns `None` if this target has refused it before.
    fn member(&mut self, name: &'static str) -> Option<&mut Vec<u8>> {
        if self.learned.generation.contains(name) {
            let detail = "this target refused the field before; it was left out";
            self.losses.add_with(LossCode::Ignored, || note(name, LossCode::Ignored, detail));
            return None;
        }
        self.written.push(name);
        Some(self.out.key(name))
    }

    fn integer(&mut self, name: &'static str, value: i64) {
        if let Some(out) = self.member(name) {
            write::integer(out, value);
        }
    }

    fn number(&mut self, name: &'static str, value: f64) {
        if let Some(out) = self.member(name) {
            out.extend_from_slice(value.to_string().as_bytes());
        }
    }

    fn lose(&mut self, at: &str, code: LossCode, detail: &str) {
        self.losses.push(note(at, code, detail));
    }

    fn limits(&mut self, request: &Request<'_>, profile: &Profile) -> Result<(), BadRequest> {
        if let Some(asked) = request.settings.max_output_tokens {
            if asked <= 0 {
                let reason = format!("must be at least 1, not {asked}");
                return Err(BadRequest { at: "max_output_tokens".to_owned(), reason });
            }
            let limit = profile.output_limit.unwrap_or_else(|| i32::MAX.into());
            if asked > limit {
                let detail = format!("this target takes {limit} at most");
                self.lose("max_output_tokens", LossCode::Changed, &detail);
            }
            self.integer("maxOutputTokens", asked.min(limit));
        }
        let mut seen = BTreeSet::new();
        let mut stops: Vec<_> = request.settings.stop.iter().collect();
        stops.retain(|stop| !stop.is_empty() && seen.insert(stop.decode()));
        if stops.len() > MAX_STOPS {
            let detail =
                format!("Gemini takes {MAX_STOPS} stop sequences; the others are left out");
            self.lose("stop", LossCode::Changed, &detail);
        }
        if !stops.is_empty()
            && let Some(out) = self.member("stopSequences")
        {
            let mut listed = ArrayWriter::new(out);
            stops.iter().take(MAX_STOPS).for_each(|stop| stop.write(listed.element()));
        }
        Ok(())
    }

    fn sampling(&mut self, request: &Request<'_>, rules: &Rules<'_>) {
        let settings = &request.settings;
        let asked = [
            ("temperature", settings.temperature, 2.0),
            ("topP", settings.top_p, 1.0),
            ("topK", settings.top_k, f64::from(i32::MAX)),
        ];
        for (name, value, max) in asked {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let mut within = value.clamp(0.0, max);
            if name == "topK" && rules.target.backend == Backend::Developer {
                within = within.round();
            }
            if within != value {
                let detail =
                    format!("{value} is not in the range of 0 to {max}; {within} was sent");
                self.lose(name, LossCode::Changed, &detail);
            }
            if rules.profile.sampling_ignored {
                self.lose(name, LossCode::Ignored, "this model takes the setting and ignores it");
            }
            self.number(name, within);
        }
        if let Some(seed) = settings.seed {
            let within = i32::try_from(seed).unwrap_or_else(|_| {
                self.lose("seed", LossCode::Changed, "the seed was folded into 32 bits");
                (seed ^ (seed >> 32)) as i32
            });
            self.integer("seed", i64::from(within));
        }
    }

    /// What not every model takes.
    fn refused(&mut self, request: &Request<'_>, profile: &Profile) {
        let settings = &request.settings;
        let penalties = [
            ("presencePenalty", settings.presence_penalty),
            ("frequencyPenalty", settings.frequency_penalty),
        ];
        for (name, value) in penalties {
            match value.filter(|value| value.is_finite()) {
                Some(value) if profile.penalties => self.number(name, value),
                // Zero is the default.
                Some(0.0) | None => {}
                Some(_) => self.lose(name, LossCode::Ignored, "this model takes no penalties"),
            }
        }
        match settings.logprobs {
            Some(count) if profile.logprobs => {
                if let Some(out) = self.member("responseLogprobs") {
                    out.extend_from_slice(b"true");
                }
                if count > 0 {
                    self.integer("logprobs", count.min(MAX_LOGPROBS));
                }
            }
            Some(_) => {
                self.lose("logprobs", LossCode::Ignored, "this model gives no probabilities");
            }
            None => {}
        }
        match settings.candidates.filter(|count| *count > 1) {
            Some(count) if profile.multiple_candidates => {
                self.integer("candidateCount", count.min(MAX_CANDIDATES));
                if count > MAX_CANDIDATES {
                    let detail = format!("Gemini gives {MAX_CANDIDATES} answers at most");
                    self.lose("candidates", LossCode::Changed, &detail);
                }
            }
            Some(_) => {
                self.lose("candidates", LossCode::Changed, "this model gives one answer only");
            }
            None => {}
        }
    }

    fn output(&mut self, output: &Output) {
        let Output::Json { schema } = output else { return };
        let Some(out) = self.member("responseMimeType") else { return };
        write::string(out, "application/json");
        if let Some((name, json)) = schema
            && let Some(out) = self.member(name)
        {
            write::compact(out, json);
        }
    }

    fn thinking(&mut self, request: &Request<'_>, profile: &Profile) {
        let own = request.gemini_generation.iter().any(|(name, _)| name == "thinkingConfig");
        let config = thinking_config(&request.thinking, profile.thinking, own);
        if let Some(detail) = config.changed {
            self.lose("thinking", LossCode::Changed, detail);
        }
        if config.budget.is_none() && config.level.is_none() && !config.include_thoughts {
            return;
        }
        let Some(out) = self.member("thinkingConfig") else { return };
        let mut out = ObjectWriter::new(out);
        if let Some(budget) = config.budget {
            out.integer("thinkingBudget", budget);
        }
        out.optional_string("thinkingLevel", config.level);
        if config.include_thoughts {
            out.bool("includeThoughts", true);
        }
    }

    /// Members that only Gemini knows, except those that are written already.
    fn own_members(&mut self, request: &Request<'_>, backend: Backend) {
        let mut seen: BTreeSet<Cow<'_, str>> = BTreeSet::new();
        for (name, value) in &request.gemini_generation {
            let name = camel(Cow::Borrowed(name));
            let elsewhere = match backend {
                Backend::Developer => VERTEX_ONLY.contains(&&*name),
                Backend::Vertex => DEVELOPER_ONLY.contains(&&*name),
            };
            if elsewhere || self.learned.generation.contains(&*name) {
                self.lose(&name, LossCode::Ignored, "this target does not take the field");
                continue;
            }
            let said = name == "thinkingConfig" || self.written.contains(&&*name);
            if value.kind() == Kind::Null || said || seen.contains(&name) {
                continue;
            }
            self.out.raw(&name, value);
            seen.insert(name);
        }
    }
}
