use toolgate::tool;

/// Waits.
#[tool(timeout = "soon")]
fn wait() {}

/// Waits more.
#[tool(retries = 3)]
fn wait_more() {}

/// Waits no more.
#[tool]
fn wait_no_more(#[tool(optional)] city: String) -> String {
    city
}

fn main() {}
