//! Imports between the modules of a crate, and the rules of layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::layers::Layered;
use crate::source;

/// Number of imports from one top-level module to another.
pub(crate) type Imports = BTreeMap<(String, String), usize>;

/// Path of the module in a file below `src`: `api/gemini/mod.rs` is `[api, gemini]`.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<_> =
        file.with_extension("").iter().map(|it| it.to_string_lossy().into_owned()).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

/// Top-level module of a file below `src`; `(root)` for `lib.rs` and `main.rs`.
pub(crate) fn top_module(file: &Path) -> String {
    module_path(file).into_iter().next().unwrap_or_else(|| "(root)".to_owned())
}

/// Adds the imports of one file. `file` is relative to `src`.
pub(crate) fn add_imports(
    file: &Path,
    text: &str,
    known: &BTreeSet<String>,
    imports: &mut Imports,
) {
    let (product, _) = source::split_tests(text);
    let code = source::code(product);
    let here = module_path(file);
    let from = top_module(file);
    let mut add = |segments: &[&str]| {
        let Some(to) = segments.first().filter(|it| known.contains(**it) && ***it != *from) else {
            return;
        };
        *imports.entry((from.clone(), (*to).to_owned())).or_default() += 1;
    };
    for path in source::paths(&code, "crate::") {
        add(&path.split("::").skip(1).collect::<Vec<_>>());
    }
    for path in source::paths(&code, "super::") {
        let segments: Vec<&str> = path.split("::").collect();
        let ups = segments.iter().take_while(|it| **it == "super").count();
        // Only a path that leaves the top-level module names another one.
        if ups >= here.len() {
            add(&segments[ups..]);
        }
    }
}

/// Sets of modules that reach each other, of two or more modules each.
pub(crate) fn cycles(imports: &Imports) -> Vec<Vec<String>> {
    let nodes: BTreeSet<&String> = imports.keys().flat_map(|(from, to)| [from, to]).collect();
    let reaches = |start: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(node) = open.pop() {
            for (_, to) in imports.keys().filter(|(from, _)| *from == node) {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = nodes.iter().map(|node| (*node, reaches(node))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for node in &nodes {
        let is_known = found.iter().any(|cycle| cycle.contains(node));
        if is_known || !reached[node].contains(*node) {
            continue;
        }
        let cycle: Vec<_> =
            reached[node].iter().filter(|other| reached[*other].contains(*node)).cloned().collect();
        if cycle.len() > 1 {
            found.push(cycle);
        }
    }
    found
}

/// Imports that the layers forbid, as sentences.
pub(crate) fn offences(layered: &Layered, imports: &Imports) -> Vec<String> {
    let row = |module: &str| layered.rows.iter().position(|row| row.contains(&module));
    let mut found = Vec::new();
    for ((from, to), count) in imports {
        if let (Some(upper), Some(lower)) = (row(from), row(to)) {
            let how = match upper.cmp(&lower) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Equal => "of the same layer",
                std::cmp::Ordering::Greater => "of a higher layer",
            };
            let name = layered.name;
            found.push(format!("{name}: `{from}` imports `{to}`, {how} ({count} times)"));
        }
    }
    for cycle in cycles(imports) {
        let rows: BTreeSet<_> = cycle.iter().filter_map(|module| row(module)).collect();
        if rows.len() > 1 {
            found.push(format!("{}: layers in a cycle: {}", layered.name, cycle.join(", ")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERED: Layered =
        Layered { name: "x", rows: &[&["http"], &["turn", "sessions"], &["store"]] };

    fn imports(files: &[(&str, &str)]) -> Imports {
        let known = files.iter().map(|(file, _)| top_module(Path::new(file))).collect();
        let mut imports = Imports::new();
        for (file, text) in files {
            add_imports(Path::new(file), text, &known, &mut imports);
        }
        imports
    }

    #[test]
    fn downward_imports_are_allowed() {
        let got = imports(&[
            ("http/mod.rs", "use crate::turn::run; use crate::http::own;"),
            ("turn.rs", "use super::store::Store; // crate::http"),
            ("store.rs", ""),
        ]);
        assert_eq!(offences(&LAYERED, &got), Vec::<String>::new());
        assert_eq!(got.len(), 2);
    }

    #[test]
    fn upward_and_sideways_imports_are_refused() {
        let got = imports(&[
            ("http.rs", ""),
            ("sessions.rs", ""),
            ("turn/attempts.rs", "use crate::{http::Reply, sessions}; use super::local;"),
        ]);
        let want = [
            "x: `turn` imports `http`, of a higher layer (1 times)",
            "x: `turn` imports `sessions`, of the same layer (1 times)",
        ];
        assert_eq!(offences(&LAYERED, &got), want);
    }

    #[test]
    fn a_cycle_through_a_module_without_a_layer_is_refused() {
        let got = imports(&[
            ("http.rs", "use crate::turn;"),
            ("turn.rs", "use crate::state::State;"),
            ("state.rs", "use crate::http::Listener;"),
        ]);
        assert_eq!(offences(&LAYERED, &got), ["x: layers in a cycle: http, state, turn"]);
    }
}
