//! Names that Gemini accepts, for tools whose names it does not.
//!
//! A name that matches `^[A-Za-z_][A-Za-z0-9_.-]{0,63}$` stays as it is. A name in a namespace
//! becomes `namespace__name` where that fits and is free. Everything else is cleaned, shortened in
//! the middle and ends in a hash of the whole original, so that it depends on nothing but the tool
//! itself, and `a/b`, `a b` and `a_b` stay three tools. One map serves declarations, history,
//! choices and allowed lists alike.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::profile::NAME_LIMIT;
use crate::canon::{Part, Request, Tool, ToolChoice, ToolName};

/// Bytes kept of the beginning of a name that is too long. The rest is its end, which names the tool
/// itself.
const HEAD: usize = 20;

/// The names of one request's tools.
#[derive(Debug, Default)]
pub(super) struct Aliases<'r> {
    known: BTreeMap<&'r ToolName<'r>, usize>,
    aliases: Vec<String>,
    taken: BTreeSet<String>,
}

impl<'r> Aliases<'r> {
    /// Names everything that the request declares, chooses or remembers.
    pub(super) fn of(request: &'r Request<'r>) -> Self {
        let mut names = Self::default();
        let (plain, odd): (Vec<_>, Vec<_>) =
            mentioned(request).partition(|name| name.namespace.is_none() && is_valid(&name.name));
        // Valid names come first: no alias may take one of them.
        for name in plain {
            if !names.known.contains_key(name) {
                names.add(name, name.name.clone().into_owned());
            }
        }
        for name in odd {
            if !names.known.contains_key(name) {
                names.add(name, names.free_alias(name));
            }
        }
        names
    }

    fn add(&mut self, name: &'r ToolName<'r>, alias: String) {
        self.known.insert(name, self.aliases.len());
        self.taken.insert(alias.clone());
        self.aliases.push(alias);
    }

    /// The name upstream. Every name that the request mentions has one.
    pub(super) fn alias(&self, name: &ToolName<'_>) -> &str {
        let at = self.known.get(name).copied();
        at.and_then(|at| self.aliases.get(at)).map_or("unknown_tool", String::as_str)
    }

    /// A name that no tool has.
    pub(super) fn fresh(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while self.taken.contains(&name) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }

    fn free_alias(&self, name: &ToolName<'_>) -> String {
        let joined = match name.namespace.as_deref() {
            Some(namespace) if !namespace.is_empty() => format!("{namespace}__{}", name.name),
            _ => name.name.clone().into_owned(),
        };
        if name.namespace.is_some() && is_valid(&joined) && !self.taken.contains(&joined) {
            return joined;
        }
        let mut round = 0;
        loop {
            let alias = hashed(&joined, name, round);
            if !self.taken.contains(&alias) {
                return alias;
            }
            round += 1;
        }
    }
}

/// A tool's name upstream, if no other tool has it.
pub fn alias(name: &ToolName<'_>) -> String {
    if name.namespace.is_none() && is_valid(&name.name) {
        return name.name.clone().into_owned();
    }
    Aliases::default().free_alias(name)
}

/// Every name in the request: declared tools first, so that they get the better aliases.
fn mentioned<'r>(request: &'r Request<'r>) -> impl Iterator<Item = &'r ToolName<'r>> {
    let declared = request.tools.iter().filter_map(|tool| match tool {
        Tool::Function(function) => Some(&function.name),
        Tool::Freeform { name, .. } => Some(name),
        Tool::Server(_) => None,
    });
    let chosen: &[ToolName<'_>] = match &request.tool_choice {
        ToolChoice::One(name) => std::slice::from_ref(name),
        ToolChoice::Allowed { names, .. } => names,
        ToolChoice::Unset | ToolChoice::Auto | ToolChoice::Any | ToolChoice::None => &[],
    };
    let remembered =
        request.turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| match part {
            Part::Call(call) => Some(&call.tool),
            Part::Result(result) => result.tool.as_ref(),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Media(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => None,
        });
    declared.chain(chosen).chain(remembered)
}

fn is_valid(name: &str) -> bool {
    name.len() <= NAME_LIMIT
        && name.bytes().next().is_some_and(starts_name)
        && name.bytes().all(continues_name)
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// The name's valid characters and eight digits of the hash of all of it.
fn hashed(joined: &str, name: &ToolName<'_>, round: u32) -> String {
    let mut hash = Sha256::new();
    if let Some(namespace) = &name.namespace {
        hash.update(namespace.as_bytes());
        hash.update([0]);
    }
    hash.update(name.name.as_bytes());
    if round > 0 {
        hash.update([0, 0]);
        hash.update(round.to_be_bytes());
    }
    let digest = hash.finalize();
    let suffix = format!("_{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);

    let mut clean: String = joined
        .chars()
        .map(|char| if char.is_ascii() && continues_name(char as u8) { char } else { '_' })
        .collect();
    if clean.is_empty() {
        clean.push_str("tool");
    }
    if !clean.bytes().next().is_some_and(starts_name) {
        clean.insert(0, '_');
    }
    let room = NAME_LIMIT - suffix.len();
    if clean.len() > room {
        let tail = room - HEAD - 2;
        // All ASCII by now, so every index is a character's.
        clean = format!("{}__{}", &clean[..HEAD], &clean[clean.len() - tail..]);
    }
    clean + &suffix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Function;

    fn declare(name: ToolName<'static>) -> Tool<'static> {
        Tool::Function(Function {
            name,
            description: None,
            parameters: None,
            form: crate::canon::SchemaForm::JsonSchema,
            response: None,
            deferred: false,
            at: String::new(),
            schema_field: "parameters",
        })
    }

    fn named(namespace: Option<&'static str>, name: &'static str) -> ToolName<'static> {
        ToolName { namespace: namespace.map(Into::into), name: name.into() }
    }

    #[track_caller]
    fn check(tools: &[ToolName<'static>]) -> Vec<String> {
        let request =
            Request { tools: tools.iter().cloned().map(declare).collect(), ..Request::default() };
        let names = Aliases::of(&request);
        let aliases: Vec<_> = tools.iter().map(|name| names.alias(name).to_owned()).collect();
        for alias in &aliases {
            assert!(is_valid(alias), "{alias}");
        }
        assert_eq!(aliases.iter().collect::<BTreeSet<_>>().len(), tools.len(), "{aliases:?}");
        aliases
    }

    #[test]
    fn b1_long_names_that_begin_alike_stay_apart() {
        let long = "mcp__plugin_engineering_productivity_suite_issue_tracker__create_";
        let [a, b] = [format!("{long}issue"), format!("{long}issues")];
        let tools = [ToolName::plain(a), ToolName::plain(b)];
        let aliases = check(&tools);
        assert!(aliases[0].starts_with("mcp__plugin_engineer__"), "{aliases:?}");
        assert!(aliases[0].contains("tracker__create_issue_"), "{aliases:?}");
    }

    #[test]
    fn b2_odd_names_are_cleaned_and_good_ones_kept() {
        let aliases = check(&[
            ToolName::plain("21st_builder"),
            ToolName::plain("a.b-c"),
            ToolName::plain("a:b"),
            ToolName::plain("grüße"),
            ToolName::plain(""),
            ToolName::plain("_x"),
        ]);
        assert!(aliases[0].starts_with("_21st_builder_"), "{aliases:?}");
        assert_eq!(aliases[1], "a.b-c");
        assert!(aliases[2].starts_with("a_b_"), "{aliases:?}");
        assert!(aliases[4].starts_with("tool_"), "{aliases:?}");
        assert_eq!(aliases[5], "_x");
    }

    #[test]
    fn b3_names_that_clean_alike_stay_apart_and_do_not_depend_on_each_other() {
        let all = [ToolName::plain("a/b"), ToolName::plain("a b"), ToolName::plain("a_b")];
        let together = check(&all);
        assert_eq!(together[2], "a_b");
        for (name, alias) in all.iter().zip(&together) {
            assert_eq!(check(std::slice::from_ref(name)), [alias.as_str()]);
        }
        // Another tool has the very name that would be made up.
        let taken = together[0].clone();
        check(&[ToolName::plain("a/b"), ToolName::plain(taken)]);
    }

    #[test]
    fn b5_namespaces_read_well_and_do_not_collide() {
        let aliases = check(&[
            named(Some("mcp__files"), "read"),
            named(None, "mcp__files__read"),
            named(None, "read"),
            named(Some("a__b"), "c"),
            named(Some("a"), "b__c"),
            named(Some("clock"), "now"),
        ]);
        assert_eq!(aliases[1], "mcp__files__read");
        assert!(aliases[0].starts_with("mcp__files__read_"), "{aliases:?}");
        assert_eq!((aliases[2].as_str(), aliases[3].as_str()), ("read", "a__b__c"));
        assert!(aliases[4].starts_with("a__b__c_"), "{aliases:?}");
        assert_eq!(aliases[5], "clock__now");
    }
}
