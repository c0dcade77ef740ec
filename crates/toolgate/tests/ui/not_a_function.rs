use toolgate::{tool, tools};

#[tool]
struct Tool;

struct Empty;

#[tools]
impl Empty {
    /// Not marked.
    fn nothing(&self) {}
}

fn main() {}
