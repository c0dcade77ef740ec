//! Which tool the model meant.

use crate::upstream::generate_content::ToolEntry;

/// The entry that was meant, and whether its name was written differently.
pub(super) struct Found<'a> {
    pub(super) entry: &'a ToolEntry,
    pub(super) is_exact: bool,
}

/// Finds the tool that the model calls `name`.
///
/// Gemini puts `default_api:` or `functions.` in front of names, changes their case, and at times
/// takes the client's name where we declared an alias. A name is mended only where one tool alone
/// can be meant.
pub(super) fn resolve<'a>(tools: &'a [ToolEntry], name: &str) -> Option<Found<'a>> {
    if let Some(entry) = tools.iter().find(|entry| entry.alias == name) {
        return Some(Found { entry, is_exact: true });
    }
    let is_one_of = |forms: &[&str], known: &str, same: fn(&str, &str) -> bool| {
        forms.iter().any(|form| same(form, known))
    };
    let forms = &forms(name);
    let same: fn(&str, &str) -> bool = |a, b| a == b;
    let find = |same| {
        only(tools.iter().filter(|entry| is_one_of(forms, &entry.alias, same))).or_else(|| {
            only(tools.iter().filter(|entry| {
                is_one_of(forms, &entry.name.name, same)
                    || (entry.name.namespace.is_some()
                        && is_one_of(forms, &entry.name.to_string(), same))
            }))
        })
    };
    let entry = find(same).or_else(|| find(str::eq_ignore_ascii_case))?;
    Some(Found { entry, is_exact: false })
}

/// Whether the model means the function `declared`.
pub(super) fn means(name: &str, declared: &str) -> bool {
    forms(name).iter().any(|form| form.eq_ignore_ascii_case(declared))
}

/// The name, and its rest without the prefixes that Gemini invents.
fn forms(name: &str) -> Vec<&str> {
    const PREFIXES: [&str; 5] = ["default_api", "functions", "function", "tools", "tool"];
    let mut forms = vec![name];
    let mut rest = name;
    while let Some(inner) = PREFIXES.iter().find_map(|prefix| {
        let inner = rest.strip_prefix(prefix)?.strip_prefix([':', '.', '/'])?;
        Some(inner.trim_start_matches(':'))
    }) {
        forms.push(inner);
        rest = inner;
    }
    forms
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::ToolName;
    use crate::upstream::generate_content::ToolInput;

    #[test]
    fn b4_names_are_found_again() {
        let entry = |alias: &str, name: ToolName<'static>| ToolEntry {
            alias: alias.to_owned(),
            name,
            input: ToolInput::Freeform,
        };
        let namespaced = ToolName { namespace: Some("mcp__repl".into()), name: "run code".into() };
        let tools = [
            entry("Bash", ToolName::plain("Bash")),
            entry("read", ToolName::plain("read")),
            entry("READ", ToolName::plain("READ")),
            entry("mcp__repl_run_code_1a2b", namespaced),
            entry("functions.tools", ToolName::plain("functions.tools")),
        ];
        for (said, want, exact) in [
            ("Bash", Some("Bash"), true),
            ("default_api:Bash", Some("Bash"), false),
            ("default_api.Bash", Some("Bash"), false),
            ("default_api::bash", Some("Bash"), false),
            ("default_api:functions.Bash", Some("Bash"), false),
            ("functions.Bash", Some("Bash"), false),
            ("BASH", Some("Bash"), false),
            ("read", Some("read"), true),
            ("Read", None, false),
            ("mcp__repl.run code", Some("mcp__repl_run_code_1a2b"), false),
            ("run code", Some("mcp__repl_run_code_1a2b"), false),
            ("functions.tools", Some("functions.tools"), true),
            ("Basher", None, false),
            ("default_api:", None, false),
        ] {
            let found = resolve(&tools, said);
            assert_eq!(found.as_ref().map(|it| it.entry.alias.as_str()), want, "{said}");
            assert_eq!(found.is_some_and(|it| it.is_exact), exact, "{said}");
        }
    }
}
