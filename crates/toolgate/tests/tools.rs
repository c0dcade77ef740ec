//! Declarations of tools from functions, methods, types and JSON.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate::{Context, FunctionTool, Output, Tool, ToolError, Toolset, tool, tools};

/// Where to look.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Indoors,
    OutDoors,
}

/// A point on the map.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
struct Point {
    /// Degrees north.
    lat: f64,
    /// Degrees east.
    #[serde(rename = "lon")]
    longitude: f64,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64 },
}

#[track_caller]
fn declares<T: FunctionTool>(name: &str, description: &str, parameters: Option<&Value>) {
    let tool = T::tool();
    assert_eq!(tool.name(), name);
    assert_eq!(tool.description(), description);
    assert_eq!(tool.parameters().as_ref(), parameters, "{name}");
}

/// The weather in a city.
///
/// Knows a few cities only.
#[tool]
async fn weather(
    /// The city's name.
    city: String,
    /// Days ahead.
    days: Option<u8>,
) -> Result<String, String> {
    if city == "Atlantis" {
        Err("it is under water".to_owned())
    } else {
        Ok(format!("{city} {days:?}"))
    }
}

#[test]
fn r010_a_function_declares_itself() {
    declares::<weather>(
        "weather",
        "The weather in a city.\n\nKnows a few cities only.",
        Some(&json!({
            "type": "object",
            "properties": {
                "city": {"description": "The city's name.", "type": "string"},
                "days": {
                    "description": "Days ahead.",
                    "type": ["integer", "null"],
                    "format": "uint8",
                    "minimum": 0,
                    "maximum": 255,
                },
            },
            "required": ["city"],
        })),
    );
}

/// What time it is.
#[tool(name = "clock", timeout = "250ms", deterministic)]
fn time() -> &'static str {
    "noon"
}

#[test]
fn r009_no_arguments_no_parameters() {
    declares::<time>("clock", "What time it is.", None);
    assert_eq!(time(), "noon");
}

/// Does everything.
#[tool]
#[expect(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "all sorts of them")]
fn many(
    text: &str,
    words: &[String],
    flag: bool,
    whole: i64,
    real: f32,
    place: Place,
    point: &Point,
    by_name: BTreeMap<String, u32>,
    pair: (i32, String),
    #[tool(default)] quiet: bool,
    #[tool(default = 3)] times: u32,
    #[serde(rename = "type")] kind: Option<String>,
    any: Value,
) -> String {
    format!(
        "{text} {words:?} {flag} {whole} {real} {place:?} {point:?} {by_name:?} {pair:?} {quiet} {times} {kind:?} {any}"
    )
}

#[test]
fn r006_every_type_has_a_schema() {
    let schema = many::tool().parameters().unwrap();
    let of = |name: &str| schema["properties"][name].clone();
    assert_eq!(of("text"), json!({"type": "string"}));
    assert_eq!(of("words"), json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(of("flag"), json!({"type": "boolean"}));
    assert_eq!(of("whole"), json!({"type": "integer", "format": "int64"}));
    assert_eq!(of("real"), json!({"type": "number", "format": "float"}));
    assert_eq!(
        of("place"),
        json!({"description": "Where to look.", "type": "string", "enum": ["indoors", "out_doors"]})
    );
    assert_eq!(
        of("point"),
        json!({
            "description": "A point on the map.",
            "type": "object",
            "properties": {
                "lat": {"description": "Degrees north.", "type": "number", "format": "double"},
                "lon": {"description": "Degrees east.", "type": "number", "format": "double"},
            },
            "required": ["lat", "lon"],
        })
    );
    let numbers = json!({"type": "integer", "format": "uint32", "minimum": 0});
    assert_eq!(of("by_name"), json!({"type": "object", "additionalProperties": numbers}));
    assert_eq!(of("pair")["prefixItems"][1], json!({"type": "string"}));
    assert_eq!(of("quiet"), json!({"type": "boolean", "default": false}));
    assert_eq!(of("times")["default"], json!(3));
    assert_eq!(of("type"), json!({"type": ["string", "null"]}));
    let required =
        ["text", "words", "flag", "whole", "real", "place", "point", "by_name", "pair", "any"];
    assert_eq!(schema["required"], json!(required));
}

#[tokio::test]
async fn arguments_are_passed_by_value_and_by_reference() {
    let tools = Toolset::new().with::<many>();
    let said = tools
        .call(
            "many",
            &json!({
                "text": "t", "words": ["a"], "flag": true, "whole": 1, "real": 2, "place": "indoors",
                "point": {"lat": 1, "lon": 2.5}, "by_name": {"x": 1}, "pair": [1, "y"],
                "any": {"k": [null]}, "unheard_of": 1,
            }),
        )
        .await
        .unwrap();
    let point = "Point { lat: 1.0, longitude: 2.5 }";
    let want = format!(
        r#"t ["a"] true 1 2 Indoors {point} {{"x": 1}} (1, "y") false 3 None {{"k":[null]}}"#
    );
    assert_eq!(said.to_value(), json!(want));
}

/// Says what a shape is.
#[tool]
fn measure(shapes: &[Shape], #[schemars(range(min = 1, max = 9))] scale: u8) -> f64 {
    let area = |shape: &Shape| match shape {
        Shape::Circle { radius } => 3.0 * radius * radius,
        Shape::Square { side } => side * side,
    };
    shapes.iter().map(area).sum::<f64>() * f64::from(scale)
}

#[tokio::test]
async fn r011_nested_types_and_unions() {
    let schema = measure::tool().parameters().unwrap();
    assert_eq!(schema["properties"]["scale"]["minimum"], json!(1));
    assert_eq!(schema["properties"]["scale"]["maximum"], json!(9));
    let variants = schema["properties"]["shapes"]["items"]["oneOf"].as_array().unwrap();
    assert_eq!(variants[1]["properties"]["kind"]["const"], json!("square"));
    let tools = Toolset::new().with::<measure>();
    // The second variant of a union is accepted too.
    let arguments = json!({"shapes": [{"kind": "square", "side": 2}, {"kind": "circle", "radius": 1}], "scale": 2});
    assert_eq!(tools.call("measure", &arguments).await.unwrap().to_value(), json!(14.0));
    let error = tools.call("measure", &json!({"shapes": [{"kind": "cube"}], "scale": 1})).await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("shapes[0]"), "{error}");
}

mod returning {
    use super::*;

    /// Text.
    #[tool]
    async fn text() -> String {
        "22 °C".to_owned()
    }

    /// An object.
    #[tool]
    fn object() -> Point {
        Point { lat: 1.0, longitude: 2.0 }
    }

    /// Nothing.
    #[tool]
    fn nothing() {}

    /// A list.
    #[tool]
    async fn list() -> std::io::Result<Vec<u8>> {
        Ok(vec![1, 2])
    }

    /// Fails with a cause.
    #[tool]
    async fn cause() -> std::io::Result<()> {
        Err(std::io::Error::other("the disk is full"))
    }

    /// Media.
    #[tool(inline)]
    fn media() -> Result<Output, ToolError> {
        Ok(Output::text("a dot").and_media("image/png", b"png"))
    }

    /// A result that is data.
    #[tool]
    fn maybe() -> Option<u8> {
        None
    }

    #[tokio::test]
    async fn r047_any_serialisable_value_is_a_result() {
        let tools = Toolset::new()
            .with::<text>()
            .with::<object>()
            .with::<nothing>()
            .with::<list>()
            .with::<cause>()
            .with::<media>()
            .with::<maybe>();
        for (name, want) in [
            ("text", json!("22 °C")),
            ("object", json!({"lat": 1.0, "lon": 2.0})),
            ("nothing", json!(null)),
            ("list", json!([1, 2])),
            ("media", json!("a dot")),
            ("maybe", json!(null)),
        ] {
            assert_eq!(tools.call(name, &json!({})).await.unwrap().to_value(), want, "{name}");
        }
        let error = tools.call("cause", &json!({})).await.unwrap_err();
        assert_eq!(error, ToolError::Failed("the disk is full".to_owned()));
        assert_eq!(tools.call("media", &json!({})).await.unwrap().parts().len(), 2);
    }
}

/// Counts.
struct Counter {
    count: AtomicU32,
}

#[tools]
impl Counter {
    /// Adds to the count.
    #[tool]
    async fn add(&self, context: &Context, by: u32) -> String {
        let now = self.count.fetch_add(by, Ordering::Relaxed) + by;
        format!("{now} by {}", context.tool())
    }

    /// Says the count.
    #[tool(name = "read_count")]
    fn read(self: Arc<Self>) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    fn not_a_tool(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn methods_are_tools_of_their_object() {
    let counter = Arc::new(Counter { count: AtomicU32::new(1) });
    let tools = Toolset::new().provider(&counter);
    let said = tools.call("add", &json!({"by": 2})).await.unwrap();
    assert_eq!(said.to_value(), json!("3 by add"));
    assert_eq!(tools.call("read_count", &json!({})).await.unwrap().to_value(), json!(3));
    assert_eq!(counter.not_a_tool(), 3);
    assert_eq!(counter.add_tool().parameters().unwrap()["required"], json!(["by"]));
    assert_eq!(counter.add(&Context::default(), 1).await, "4 by ");
}

struct Shop {
    stock: &'static str,
}

/// Looks up what is in stock.
#[tool]
async fn stock(context: Context) -> Result<String, &'static str> {
    let shop: &Shop = context.state().ok_or("the shop is closed")?;
    Ok(shop.stock.to_owned())
}

#[tokio::test]
async fn state_is_shared_by_type() {
    let tools = Toolset::new().with::<stock>();
    assert_eq!(
        tools.call("stock", &json!({})).await.unwrap_err().to_string(),
        "the shop is closed"
    );
    let tools = tools.state(7_u8).state(Shop { stock: "tea" });
    assert_eq!(tools.call("stock", &json!({})).await.unwrap().to_value(), json!("tea"));
}

#[tokio::test]
async fn r012_declarations_with_closures() {
    let parameters = json!({"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}});
    let declaration = json!({"name": "raw", "description": "Raw.", "parameters": parameters});
    let raw = Tool::from_json(&declaration, |arguments, _| async move {
        match arguments["a"].as_i64() {
            Some(a) => Ok(json!({"twice": a * 2})),
            None => Err("no `a`"),
        }
    })
    .unwrap();
    assert_eq!(raw.parameters(), Some(parameters));
    let only = Tool::declared::<Point>("mark", "Marks a point.");
    assert!(!only.is_callable());
    let tools = Toolset::new().tool(raw).tool(only);
    assert_eq!(tools.call("raw", &json!({"a": 4})).await.unwrap().to_value(), json!({"twice": 8}));
    let error = tools.call("mark", &json!({})).await.unwrap_err();
    assert_eq!(error, ToolError::Declared("mark".to_owned()));
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    #[serde(default)]
    children: Vec<Self>,
}

#[tokio::test]
async fn recursive_types_have_schemas() {
    let tool = Tool::new("depth", "How deep.", |tree: Tree, _| async move {
        fn depth(tree: &Tree) -> usize {
            1 + tree.children.iter().map(depth).max().unwrap_or(0)
        }
        Ok::<_, String>(depth(&tree))
    });
    assert!(tool.parameters().is_some());
    let tools = Toolset::new().tool(tool);
    let tree = json!({"children": [{"children": [{}]}, {}]});
    assert_eq!(tools.call("depth", &tree).await.unwrap().to_value(), json!(3));
}

#[tokio::test]
async fn results_are_described_on_request() {
    use toolgate_sim::{Script, Sim, SimConfig};

    let sim = Sim::start(SimConfig::scripted(Script::new().text("Ok.").times(0))).await.unwrap();
    let client = toolgate::Client::builder().api_key("a key").base_url(sim.url()).build().unwrap();
    for (tool, described) in [(time::tool(), false), (time::tool().returns::<Point>(), true)] {
        let tools = Toolset::new().tool(tool);
        client.generate(toolgate::Request::new("Hi.").tools(tools)).await.unwrap();
        let sent = sim.requests().last().unwrap().json();
        let declaration = &sent["tools"][0]["functionDeclarations"][0];
        let schema = declaration.get("responseJsonSchema");
        assert_eq!(schema.is_some(), described);
        assert!(schema.is_none_or(|schema| schema["required"] == json!(["lat", "lon"])));
    }
}

#[test]
fn macro_errors_are_readable() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
