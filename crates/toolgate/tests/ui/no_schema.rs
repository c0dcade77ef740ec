use toolgate::tool;

struct City(String);

/// Visits.
#[tool]
fn visit(city: City) -> String {
    city.0
}

fn main() {}
