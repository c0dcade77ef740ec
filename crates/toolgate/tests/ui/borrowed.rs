use toolgate::tool;

/// Joins words, changes some, counts anything.
#[tool]
fn join(words: Vec<&str>, changed: &mut String, counted: impl Iterator) -> String {
    changed.push_str(&counted.count().to_string());
    words.join(" ")
}

fn main() {}
