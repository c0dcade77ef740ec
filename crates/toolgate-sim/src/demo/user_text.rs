//! The user's own text, without the additions of client programs.

use std::collections::HashSet;

use toolgate_validate::{Content, Data, Request};

/// Last text of the user, with the index of its content.
pub(super) fn last(request: &Request) -> Option<(usize, String)> {
    let contents = request.contents.iter().enumerate().rev();
    contents.into_iter().find_map(|(at, content)| last_text(content).map(|text| (at, text)))
}

/// Last text of a content that is the user's own.
fn last_text(content: &Content) -> Option<String> {
    if content.is_model() {
        return None;
    }
    content.parts.iter().rev().find_map(|part| match &part.data {
        Data::Text(text) => own_text(text),
        Data::None
        | Data::Media { .. }
        | Data::Call { .. }
        | Data::Response { .. }
        | Data::Server(..) => None,
    })
}

/// Openings of texts that coding agents add.
const OPENINGS: [&str; 12] = [
    "# Environment\n",
    "# AGENTS.md instructions",
    "Caveat: The messages below",
    "Please continue.",
    "System: Please continue.",
    "The TodoWrite tool hasn't been used recently",
    "The task tools haven't been used recently",
    "This is the Gemini CLI.",
    "Tool loaded.",
    "Tools loaded.",
    "[Request interrupted",
    "Continue from where you left off.",
];

/// HTML elements, which users write about; other tags come from programs.
const HTML: &str = " a abbr article aside b blockquote body br button canvas caption cite code col dd \
    del details dialog div dl dt em embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 \
    head header hr html i iframe img input ins label legend li link main mark meta nav ol optgroup \
    option output p param picture pre progress q s samp script section select small source span \
    strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr \
    tt u ul var video wbr ";

/// Longest text in bytes; of a longer one, the end is used.
const MAX_TEXT_BYTES: usize = 16_384;

fn own_text(text: &str) -> Option<String> {
    let bare = without_tags(text);
    let bare = bare.trim();
    if bare.is_empty() || OPENINGS.iter().any(|opening| bare.starts_with(opening)) {
        return None;
    }
    // opencode puts a prompt from the command line in quotes.
    let inside = bare.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let bare = inside.filter(|inside| !inside.contains('"')).map_or(bare, str::trim);
    let start =
        (bare.len().saturating_sub(MAX_TEXT_BYTES)..).find(|at| bare.is_char_boundary(*at))?;
    Some(bare[start..].to_owned())
}

/// Removes `<tag …>…</tag>`. A reminder's tag that is never closed removes the rest of the text.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_TEXT_BYTES));
    let mut open = HashSet::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let name = tag_name(tag);
        // A tag that is not closed after this position is not closed after a later one.
        let closed = (!name.is_empty() && !open.contains(name)).then(|| {
            let close = format!("</{name}>");
            tag.find(&close).map(|at| at + close.len())
        });
        match closed {
            Some(Some(end)) => rest = &tag[end..],
            Some(None) if is_reminder(name) => rest = "",
            Some(None) => {
                open.insert(name);
                out.push('<');
                rest = &tag[1..];
            }
            None => {
                out.push('<');
                rest = &tag[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Name of the tag that a text begins with; empty for HTML elements.
fn tag_name(tag: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = tag[1..].split(|c| !is_part(c)).next().unwrap_or("");
    let is_html = name.len() < 16 && HTML.contains(&format!(" {} ", name.to_lowercase()));
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_html || !starts { "" } else { name }
}

fn is_reminder(name: &str) -> bool {
    name.contains(['-', '_']) && (name.starts_with("system") || name.starts_with("environment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_of_programs_are_removed() {
        for (text, want) in [
            ("Hello", Some("Hello")),
            ("\"Run ls\"", Some("Run ls")),
            ("\"a\" or \"b\"", Some("\"a\" or \"b\"")),
            ("<system-reminder>\nUse <b>rules</b>\n</system-reminder>\nHello <b", Some("Hello <b")),
            ("Make <b>this</b> bold, 1 < 2", Some("Make <b>this</b> bold, 1 < 2")),
            ("<environment_context><cwd>/w</cwd></environment_context>", None),
            ("<skill name=\"x\">do</skill> go", Some("go")),
            ("<system-reminder>never closed", None),
            ("a <T> b <T> c", Some("a <T> b <T> c")),
            ("Tool loaded.", None),
            ("The task tools haven't been used recently. If you", None),
            ("# Environment\nYou have been invoked in a folder", None),
            ("# Environmental law\nSum it up", Some("# Environmental law\nSum it up")),
            (" ", None),
        ] {
            assert_eq!(own_text(text).as_deref(), want, "{text}");
        }
        let long = format!("<system-reminder>{}</system-reminder>Hello", "x ".repeat(20_000));
        assert_eq!(own_text(&long).as_deref(), Some("Hello"));
        assert_eq!(own_text(&"ä".repeat(20_000)).map(|it| it.len()), Some(MAX_TEXT_BYTES));
    }
}
