use toolgate::tool;

#[tool]
fn silent(city: String) -> String {
    city
}

fn main() {}
