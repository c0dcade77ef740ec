use toolgate::tool;

struct Picture;

/// Paints.
#[tool]
fn paint() -> Picture {
    Picture
}

fn main() {}
