//! What Gemini has refused lately, by model and back end.
//!
//! Rules come with the model and change monthly. Where Gemini answers 400 for one tool or one field,
//! the request is sent once more without it, and for a while nobody else has to learn the same: what
//! the target cannot do at all is known of every request to it, what was wrong with a tool or a setting
//! only of those that say the very same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{Context, SHA256, digest};
use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_core::canon::{Failure, FailureKind, Request, Signature, Tool, ToolName};
use toolgate_core::gemini::upstream::Learned;
use toolgate_core::gemini::{Backend, Exchange, Target};
use toolgate_core::json::Raw;

/// All lessons.
#[derive(Debug, Default)]
pub struct Lessons {
    learned: Mutex<BTreeMap<Target, (Learned, Instant)>>,
    /// Tools and settings that were refused, and until when that is known.
    said: Mutex<BTreeMap<(Target, Mark), (Refused, Instant)>>,
    /// Tools of Gemini's own clients that were refused as they are, and until when that is known.
    refused: Mutex<BTreeMap<Tools, Instant>>,
    /// Signatures of which one was refused, and until when that is known.
    signatures: Mutex<BTreeMap<Mark, Instant>>,
}

/// The hash of something that a request says.
type Mark = [u8; 32];

/// What of it was refused.
#[derive(Clone, Debug)]
enum Refused {
    Tool(ToolName<'static>),
    /// Members of `generationConfig`.
    Settings(BTreeSet<String>),
}

/// A target, and the hash of what a request says under `tools`.
type Tools = (Target, Vec<u8>);

/// How long a lesson is remembered.
const MEMORY: Duration = Duration::from_secs(600);
/// How many sets of tools are remembered.
const SETS: usize = 256;
/// How many signatures are.
const SIGNATURES: usize = 4096;
/// How long.
const LONG_MEMORY: Duration = Duration::from_secs(24 * 3600);

/// What is known after a refusal, with what was known before. `None`: it teaches nothing new.
pub(crate) fn lesson(known: &Learned, exchange: &Exchange, failure: &Failure) -> Option<Learned> {
    if failure.kind != FailureKind::InvalidRequest || failure.upstream_status != Some(400) {
        return None;
    }
    let mut learned = known.clone();
    learned.learn(&failure.message, exchange).then_some(learned)
}

impl Lessons {
    /// What this target has refused lately of what this request says.
    pub(crate) fn of(&self, target: &Target, request: &Request<'_>, now: Instant) -> Learned {
        let lessons = locked(&self.learned);
        let mut known = match lessons.get(target) {
            Some((learned, until)) if *until > now => learned.clone(),
            _ => Learned::default(),
        };
        drop(lessons);
        let said = locked(&self.said);
        // Almost always there is nothing to look for.
        if said.is_empty() {
            return known;
        }
        for (mark, _) in marks(request) {
            match said.get(&(target.clone(), mark)) {
                Some((Refused::Tool(name), until)) if *until > now => {
                    known.tools.insert(name.clone());
                }
                Some((Refused::Settings(members), until)) if *until > now => {
                    known.generation.extend(members.iter().cloned());
                }
                Some(_) | None => {}
            }
        }
        known
    }

    /// Remembers a lesson that this request was taught.
    pub(crate) fn remember(
        &self,
        target: &Target,
        request: &Request<'_>,
        lesson: &Learned,
        now: Instant,
    ) {
        let until = now + MEMORY;
        let mut said = locked(&self.said);
        said.retain(|_, (_, until)| *until > now);
        for (mark, what) in marks(request) {
            let refused = match what {
                Said::Tool(name) if lesson.tools.contains(&name) => Refused::Tool(name),
                Said::Settings if !lesson.generation.is_empty() => {
                    Refused::Settings(lesson.generation.clone())
                }
                Said::Tool(_) | Said::Settings => continue,
            };
            if said.len() < SETS {
                said.insert((target.clone(), mark), (refused, until));
            }
        }
        drop(said);
        let mut cannot =
            Learned { tools: BTreeSet::new(), generation: BTreeSet::new(), ..lesson.clone() };
        if cannot == Learned::default() {
            return;
        }
        let mut lessons = locked(&self.learned);
        lessons.retain(|_, (_, until)| *until > now);
        if let Some((known, _)) = lessons.get(target) {
            cannot.add(known);
        }
        lessons.insert(target.clone(), (cannot, until));
    }

    /// Whether any signature was refused lately. Almost always there is none.
    pub(crate) fn has_refused_signatures(&self) -> bool {
        !locked(&self.signatures).is_empty()
    }

    /// Whether this one may have been refused. What has said since who issued it may have not.
    pub(crate) fn has_refused_signature(&self, target: &Target, signature: &Signature<'_>) -> bool {
        locked(&self.signatures).contains_key(&mark_of(target, signature))
    }

    /// Remembers a signature that was left out because one was refused.
    pub(crate) fn refuse_signature(
        &self,
        target: &Target,
        signature: &Signature<'_>,
        now: Instant,
    ) {
        let mut signatures = locked(&self.signatures);
        if signatures.len() >= SIGNATURES {
            signatures.retain(|_, until| *until > now);
        }
        if signatures.len() < SIGNATURES {
            signatures.insert(mark_of(target, signature), now + LONG_MEMORY);
        }
    }

    /// Whether the target has lately refused the tools of this request of a Gemini client.
    pub(crate) fn has_refused(&self, target: &Target, body: &[u8], now: Instant) -> bool {
        // Almost always there is nothing to look for, and the body need not be read.
        if locked(&self.refused).is_empty() {
            return false;
        }
        let Some(tools) = tools(target, body) else { return false };
        locked(&self.refused).get(&tools).is_some_and(|until| *until > now)
    }

    /// Remembers that the target refuses the tools of this request.
    pub(crate) fn refuse(&self, target: &Target, body: &[u8], now: Instant) {
        let Some(tools) = tools(target, body) else { return };
        let mut refused = locked(&self.refused);
        refused.retain(|_, until| *until > now);
        if refused.len() < SETS {
            refused.insert(tools, now + MEMORY);
        }
    }
}

/// Whether a refusal is about a signature: of another model, key or project, or altered.
pub(crate) fn is_about_signatures(failure: &Failure) -> bool {
    let said = failure.message.to_lowercase();
    let is_signature = said.contains("thought signature") || said.contains("thought_signature");
    let words = ["corrupted", "invalid thought", "not valid", "base64 decoding failed"];
    failure.kind == FailureKind::InvalidRequest
        && is_signature
        && words.iter().any(|it| said.contains(it))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that a request says and that may be refused.
enum Said {
    Settings,
    Tool(ToolName<'static>),
}

/// What a request says, and its marks.
fn marks<'r>(request: &'r Request<'_>) -> impl Iterator<Item = (Mark, Said)> + 'r {
    let settings = format!("{:?}{:?}", request.settings, request.thinking);
    let tools = request.tools.iter().filter_map(|tool| match tool {
        Tool::Function(function) => {
            let schema = function.parameters.as_ref().map_or("", Raw::get);
            let name = function.name.clone().into_owned();
            Some((mark("tool", &[&name.to_string(), schema]), Said::Tool(name)))
        }
        Tool::Freeform { .. } | Tool::Server(_) => None,
    });
    tools.chain([(mark("settings", &[&settings]), Said::Settings)])
}

fn mark(kind: &str, words: &[&str]) -> Mark {
    let mut hash = Context::new(&SHA256);
    for word in [kind].iter().chain(words) {
        hash.update(word.as_bytes());
        hash.update(&[0]);
    }
    let mut mark = [0; 32];
    mark.copy_from_slice(hash.finish().as_ref());
    mark
}

fn mark_of(target: &Target, signature: &Signature<'_>) -> Mark {
    let backend = match target.backend {
        Backend::Developer => "developer",
        Backend::Vertex => "vertex",
    };
    let named = if signature.issuer().is_some() { "named" } else { "unnamed" };
    mark("signature", &[&target.model, backend, named, signature.expose()])
}

fn tools(target: &Target, body: &[u8]) -> Option<Tools> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        tools: Option<&'a RawValue>,
    }
    let tools = serde_json::from_slice::<Body<'_>>(body).ok()?.tools?;
    Some((target.clone(), digest(&SHA256, tools.get().as_bytes()).as_ref().to_vec()))
}

#[cfg(test)]
mod tests {
    use toolgate_core::canon::{Function, SchemaForm};
    use toolgate_core::gemini::Backend;

    use super::*;

    #[test]
    fn r137_a_lesson_is_learned_once_and_forgotten_in_time() {
        let lessons = Lessons::default();
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let exchange = Exchange {
            target: target.clone(),
            tools: Vec::new(),
            one_call: false,
            answer_function: None,
        };
        let message = "Tool use with function calling is unsupported";
        let mut failure = Failure::new(FailureKind::InvalidRequest, message);
        failure.upstream_status = Some(400);
        let now = Instant::now();
        let request = Request::default();
        let learned = lesson(&Learned::default(), &exchange, &failure).unwrap();
        lessons.remember(&target, &request, &learned, now);
        assert!(lessons.of(&target, &request, now).no_mixed_tools);
        let other = Learned { no_call_ids: true, ..Learned::default() };
        lessons.remember(&target, &request, &other, now);
        let known = lessons.of(&target, &request, now);
        assert!(known.no_mixed_tools && known.no_call_ids);
        assert!(!lessons.of(&target, &request, now + MEMORY * 2).no_mixed_tools);
        failure.upstream_status = Some(403);
        assert!(lesson(&Learned::default(), &exchange, &failure).is_none());
    }

    /// R97, R112: what was wrong with one tool is no lesson about another of the same name.
    #[test]
    fn r97_r112_a_tool_is_known_by_what_it_says() {
        let lessons = Lessons::default();
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let request = |schema: &str, temperature: f64| {
            let mut request = Request::default();
            request.tools.push(Tool::Function(Function {
                name: ToolName::plain("search"),
                description: None,
                parameters: Raw::parse(schema.to_owned()),
                form: SchemaForm::JsonSchema,
                response: None,
                deferred: false,
                at: String::new(),
                schema_field: "parameters",
            }));
            request.settings.temperature = Some(temperature);
            request
        };
        let now = Instant::now();
        let mut learned = Learned::default();
        learned.tools.insert(ToolName::plain("search"));
        learned.generation.insert("temperature".to_owned());
        lessons.remember(&target, &request("{}", 1.0), &learned, now);
        assert_eq!(lessons.of(&target, &request("{}", 1.0), now), learned);
        let other = lessons.of(&target, &request(r#"{"type":"object"}"#, 0.5), now);
        assert_eq!(other, Learned::default());
        assert_eq!(lessons.of(&target, &request("{}", 1.0), now + MEMORY), Learned::default());
    }

    #[test]
    fn tools_are_refused_once_and_forgotten_in_time() {
        let lessons = Lessons::default();
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let now = Instant::now();
        let (first, again) =
            (br#"{"contents":[],"tools":[1]}"#, br#"{"tools":[1],"contents":[2]}"#);
        assert!(!lessons.has_refused(&target, first, now));
        lessons.refuse(&target, first, now);
        assert!(lessons.has_refused(&target, again, now));
        assert!(!lessons.has_refused(&target, br#"{"tools":[2]}"#, now));
        assert!(
            !lessons.has_refused(&target, b"{}", now) && !lessons.has_refused(&target, b"", now)
        );
        assert!(!lessons.has_refused(&target, again, now + MEMORY));
    }
}
