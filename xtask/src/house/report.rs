//! The report, and the verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::graph::{self, Imports};
use super::layers::{BANNED, DEPENDENCIES, LAYERED, MAX_FILE_LINES};
use crate::command::root;
use crate::run::Verdict;
use crate::source::{self, Crate, Lines};

/// Prints the report; fails where a rule is broken.
pub(crate) fn house() -> anyhow::Result<Verdict> {
    let mut offences = Vec::new();
    let mut total = Lines::default();
    println!("{:<34} {:>7} {:>9} {:>7}", "crate, module", "code", "comments", "tests");
    for member in source::crates()? {
        let (lines, imports) = print_crate(&member, &mut offences)?;
        total += lines;
        let layered = LAYERED.iter().find(|it| it.name == member.name);
        if let Some(layered) = layered {
            print_layers(layered.rows, &imports);
            offences.extend(graph::offences(layered, &imports));
        }
        for cycle in graph::cycles(&imports) {
            println!("    cycle: {}", cycle.join(", "));
        }
        check_dependencies(&member, &mut offences)?;
    }
    print_row("total", total);
    match offences.as_slice() {
        [] => Ok(Verdict::Passed),
        offences => {
            for offence in offences {
                println!("error: {offence}");
            }
            bail!("{} rules of the architecture are broken", offences.len())
        }
    }
}

fn print_row(name: &str, lines: Lines) {
    println!("{name:<34} {:>7} {:>9} {:>7}", lines.code, lines.comments, lines.tests);
}

/// Prints a crate and its modules. Returns its lines, and the imports between its modules.
fn print_crate(member: &Crate, offences: &mut Vec<String>) -> anyhow::Result<(Lines, Imports)> {
    let sources = member.folder.join("src");
    let mut modules: BTreeMap<String, Lines> = BTreeMap::new();
    let mut products = Vec::new();
    let mut total = Lines::default();
    for path in source::files(&member.folder, &["rs"])? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let length = text.lines().count();
        if length > MAX_FILE_LINES {
            let name = path.strip_prefix(root()).unwrap_or(&path).display();
            offences.push(format!("{name} has {length} lines; {MAX_FILE_LINES} are allowed"));
        }
        let inside = path.strip_prefix(&member.folder).unwrap_or(&path);
        let lines = source::count(inside, &text);
        total += lines;
        if let Ok(file) = path.strip_prefix(&sources) {
            *modules.entry(graph::top_module(file)).or_default() += lines;
            if !source::is_test_file(inside) {
                products.push((file.to_owned(), text));
            }
        }
    }
    print_row(&member.name, total);
    for (module, lines) in &modules {
        print_row(&format!("    {module}"), *lines);
    }
    let known: BTreeSet<String> = modules.into_keys().collect();
    if let Some(layered) = LAYERED.iter().find(|it| it.name == member.name) {
        let is_listed = |module: &str| layered.rows.iter().any(|row| row.contains(&module));
        let modules = known.iter().filter(|module| *module != "(root)");
        for module in modules.filter(|module| !is_listed(module)) {
            offences.push(format!("{}: `{module}` is in no layer", member.name));
        }
    }
    let mut imports = Imports::new();
    for (file, text) in &products {
        graph::add_imports(file, text, &known, &mut imports);
    }
    Ok((total, imports))
}

fn print_layers(rows: &[&[&str]], imports: &Imports) {
    let present = |module: &str| imports.keys().any(|(from, to)| from == module || to == module);
    for module in rows.iter().flat_map(|row| row.iter()).filter(|module| !present(module)) {
        println!("    layer `{module}` is absent");
    }
    for ((from, to), count) in imports {
        let is_layer = |module: &String| rows.iter().any(|row| row.contains(&module.as_str()));
        if is_layer(from) || is_layer(to) {
            println!("    {from} → {to}: {count}");
        }
    }
}

fn check_dependencies(member: &Crate, offences: &mut Vec<String>) -> anyhow::Result<()> {
    let name = member.name.as_str();
    let used = dependencies(&member.folder.join("Cargo.toml"))?;
    let Some((_, allowed)) = DEPENDENCIES.iter().find(|(it, _)| *it == name) else {
        offences.push(format!("{name} is missing from the table of dependencies"));
        return Ok(());
    };
    let banned = BANNED.iter().find(|(it, _)| *it == name).map_or(&[][..], |(_, banned)| banned);
    for package in &used {
        let is_ours = package.starts_with("toolgate");
        let is_bad =
            banned.contains(&package.as_str()) || (is_ours && !allowed.contains(&package.as_str()));
        if is_bad {
            offences.push(format!("{name} depends on {package}"));
        }
    }
    Ok(())
}

/// Packages in `[dependencies]` of a manifest.
fn dependencies(manifest: &Path) -> anyhow::Result<BTreeSet<String>> {
    let text = fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let section = text.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    Ok(section
        .filter(|line| !line.trim().is_empty() && !line.starts_with([' ', '#', '}', ']']))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .map(str::to_owned)
        .collect())
}
