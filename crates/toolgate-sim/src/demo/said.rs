//! What the user said, without what programs put around it.

use std::collections::HashSet;

use toolgate_validate::{Content, Data, Request};

/// Where the user spoke last, and the words.
pub(super) fn last(request: &Request) -> Option<(usize, String)> {
    let contents = request.contents.iter().enumerate().rev();
    contents.into_iter().find_map(|(at, content)| words(content).map(|words| (at, words)))
}

/// The last words of a content that are the user's own.
fn words(content: &Content) -> Option<String> {
    if content.is_model() {
        return None;
    }
    content.parts.iter().rev().find_map(|part| match &part.data {
        Data::Text(text) => own_words(text),
        Data::None
        | Data::Media { .. }
        | Data::Call { .. }
        | Data::Response { .. }
        | Data::Server(..) => None,
    })
}

/// How coding agents begin what they say beside the user.
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

/// Elements that people write about; every other tag is a program's.
const HTML: &str = " a abbr article aside b blockquote body br button canvas caption cite code col dd \
    del details dialog div dl dt em embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 \
    head header hr html i iframe img input ins label legend li link main mark meta nav ol optgroup \
    option output p param picture pre progress q s samp script section select small source span \
    strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr \
    tt u ul var video wbr ";

/// How much of what was said last is looked at.
const MOST: usize = 16_384;

fn own_words(text: &str) -> Option<String> {
    let bare = without_tags(text);
    let bare = bare.trim();
    if bare.is_empty() || OPENINGS.iter().any(|opening| bare.starts_with(opening)) {
        return None;
    }
    let start = (bare.len().saturating_sub(MOST)..).find(|at| bare.is_char_boundary(*at))?;
    Some(bare[start..].to_owned())
}

/// Leaves out `<tag …>…</tag>`; a program's tag that is never closed takes the rest with it.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MOST));
    let mut open = HashSet::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let name = tag_name(tag);
        // What is never closed from here on is not closed later either.
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

/// The name of the tag that a text begins with, unless people write about such.
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
    fn what_programs_say_is_left_out() {
        for (text, want) in [
            ("Hello", Some("Hello")),
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
            assert_eq!(own_words(text).as_deref(), want, "{text}");
        }
        let long = format!("<system-reminder>{}</system-reminder>Hello", "x ".repeat(20_000));
        assert_eq!(own_words(&long).as_deref(), Some("Hello"));
        assert_eq!(own_words(&"ä".repeat(20_000)).map(|it| it.len()), Some(MOST));
    }
}
