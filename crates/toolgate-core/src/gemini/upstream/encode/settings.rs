//! `generationConfig`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::output::Output;
use super::thinking::thinking_config;
use super::toolbox::{Toolbox, note};
use crate::canon::{BadRequest, LossCode, Losses, Request};
use crate::gemini::upstream::history::{Rules, camel};
use crate::gemini::upstream::{Backend, Learned, Profile};
use crate::json::{Kind, write};

/// More are refused.
const MAX_STOPS: usize = 5;
/// More alternatives for a token are refused.
const MAX_LOGPROBS: i64 = 20;
/// The members that only one back end knows.
const DEVELOPER_ONLY: [&str; 1] = ["enableEnhancedCivicAnswers"];
const VERTEX_ONLY: [&str; 4] =
    ["audioTimestamp", "modelConfig", "modelSelectionConfig", "routingConfig"];

/// Writes `"generationConfig":{…}` where there is something to say in it.
pub(super) fn write_generation_config(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    rules: &Rules<'_>,
    toolbox: &Toolbox<'_>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let start = out.len();
    write::key(out, "generationConfig");
    out.push(b'{');
    let empty = out.len();
    let mut config = Config { out, learned: rules.learned, written: Vec::new(), losses };
    config.limits(request, rules.profile)?;
    config.sampling(request, rules);
    config.refused(request, rules.profile);
    config.output(&toolbox.output);
    config.thinking(request, rules.profile);
    config.own_members(request, rules.target.backend);
    if out.len() == empty {
        out.truncate(start);
    } else {
        out.push(b'}');
    }
    Ok(())
}

struct Config<'o> {
    out: &'o mut Vec<u8>,
    learned: &'o Learned,
    written: Vec<&'static str>,
    losses: &'o mut Losses,
}

impl Config<'_> {
    /// Begins a member; not if this target has refused it before.
    fn member(&mut self, name: &'static str) -> bool {
        if self.learned.generation.contains(name) {
            let detail = "this target refused the field before; it was left out";
            self.losses.add_with(LossCode::Ignored, || note(name, LossCode::Ignored, detail));
            return false;
        }
        write::key(self.out, name);
        self.written.push(name);
        true
    }

    fn integer(&mut self, name: &'static str, value: i64) {
        if self.member(name) {
            write::integer(self.out, value);
        }
    }

    fn number(&mut self, name: &'static str, value: f64) {
        if self.member(name) {
            self.out.extend_from_slice(value.to_string().as_bytes());
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
        if !stops.is_empty() && self.member("stopSequences") {
            self.out.push(b'[');
            for stop in stops.iter().take(MAX_STOPS) {
                write::comma(self.out);
                stop.write(self.out);
            }
            self.out.push(b']');
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
                // No penalty is what the model does anyway.
                Some(0.0) | None => {}
                Some(_) => self.lose(name, LossCode::Ignored, "this model takes no penalties"),
            }
        }
        match settings.logprobs {
            Some(count) if profile.logprobs => {
                if self.member("responseLogprobs") {
                    self.out.extend_from_slice(b"true");
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
        if settings.candidates.is_some_and(|count| count > 1) {
            let detail = if profile.multiple_candidates {
                "toolgate carries one answer; the others are not asked for"
            } else {
                "this model gives one answer only"
            };
            self.lose("candidates", LossCode::Changed, detail);
        }
    }

    fn output(&mut self, output: &Output) {
        let Output::Json { schema } = output else { return };
        if !self.member("responseMimeType") {
            return;
        }
        self.out.extend_from_slice(b"\"application/json\"");
        if let Some((name, json)) = schema
            && self.member(name)
        {
            write::compact(self.out, json);
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
        if !self.member("thinkingConfig") {
            return;
        }
        self.out.push(b'{');
        if let Some(budget) = config.budget {
            write::key(self.out, "thinkingBudget");
            write::integer(self.out, budget);
        }
        if let Some(level) = config.level {
            write::key(self.out, "thinkingLevel");
            write::string(self.out, level);
        }
        if config.include_thoughts {
            write::key(self.out, "includeThoughts");
            self.out.extend_from_slice(b"true");
        }
        self.out.push(b'}');
    }

    /// Members that only Gemini knows. What was said above is not said again.
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
            write::key(self.out, &name);
            value.write(self.out);
            seen.insert(name);
        }
    }
}
