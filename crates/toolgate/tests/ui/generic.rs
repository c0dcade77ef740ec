use toolgate::tool;

/// Says anything.
#[tool]
fn say<T: std::fmt::Display>(what: T) -> String {
    what.to_string()
}

fn main() {}
